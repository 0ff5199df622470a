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

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0 s", 3270 * time.Millisecond: "3.2 s", 45900 * time.Millisecond: "45 s", 119 * time.Second: "119 s",
		23*time.Minute + 50*time.Second: "23 min", 5 * time.Hour: "5 h", 50 * time.Hour: "2 days",
	} {
		if got := units.Age(d); got != want {
			t.Errorf("%v is shown as %s, want %s", d, got, want)
		}
	}
}
