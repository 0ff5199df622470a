package figures

import (
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	var d Dist
	for i := range 200 {
		d = append(d, time.Duration(200-i)*time.Millisecond)
	}
	if got, want := d.String(), "1.0 ms / 100 ms / 198 ms / 200 ms, n=200"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
