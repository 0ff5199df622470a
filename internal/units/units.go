// Package units prints durations for people.
package units

import (
	"fmt"
	"time"
)

// Seconds keeps milliseconds, and below a tenth of a second a bit more.
func Seconds(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", Millis(d))
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}

// Millis keeps microseconds.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
