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

// Age formats how long ago something was, without digits that do not matter: "3.2 s", "45 s", "23
// min", "5 h", "12 days".
func Age(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", max(0, d).Truncate(100*time.Millisecond).Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
