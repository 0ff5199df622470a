package units_test

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/units"
)

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 3200 * time.Microsecond: "3.2 ms", 99 * time.Millisecond: "99.0 ms", 100 * time.Millisecond: "0.100 s",
		1871499 * time.Microsecond: "1.871 s", 75 * time.Second: "75.000 s",
	} {
		if got := units.Seconds(d); got != want {
			t.Errorf("%v is shown as %s, want %s", d, got, want)
		}
	}
}
