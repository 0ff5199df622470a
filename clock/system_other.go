//go:build !linux

package clock

import "time"

// System reads the clocks of the machine. It is the default. Here package time has no raw clock,
// and no clock that counts suspended time. The wall clock replaces the latter, and the drift is the
// rate by which a time daemon may slew.
type System struct{ Standard }

// Now reads package time's monotonic clock and the wall clock.
func (System) Now() Reading {
	now := time.Now()
	d := now.Sub(base)
	return Reading{Instant{Mono: d, Raw: d, Boot: time.Duration(now.UnixNano())}, now}
}

// Drift returns 0.10: a time daemon may slew the only monotonic clock there is by 8.3 %.
func (System) Drift() float64 { return 0.10 }
