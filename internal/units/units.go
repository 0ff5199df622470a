// Package units formats durations for people.
package units

import (
	"fmt"
	"time"
)

// Seconds formats a duration in seconds with three decimals, or below 100 ms in milliseconds with
// one.
func Seconds(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", Millis(d))
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}

// Millis returns a duration in milliseconds, with microseconds as decimals.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
