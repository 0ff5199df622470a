// Package clock reads the clocks that a lease is counted on.
//
// No single clock of a machine is safe for both sides of a lease. A time daemon may slew CLOCK_MONOTONIC by several per
// cent, and no clock but CLOCK_BOOTTIME sees a suspended laptop. So a reading holds several, a leader counts whichever
// moved most since its write was sent and adds the time that the machine slept, and a follower counts whichever moved
// least since it saw that write. Readings of different processes are never compared.
package clock

import "time"

// Reading is one look at every clock of this process.
type Reading struct {
	Instant
	// Wall is for people: it goes into records and events and decides nothing.
	Wall time.Time
}

// Instant is what of a reading decides. Its fields mean nothing by themselves; subtract two of the same clock with LeaderSince
// or FollowerSince.
type Instant struct {
	// Mono is CLOCK_MONOTONIC or its like: it never steps, but a time daemon may change its rate.
	Mono time.Duration
	// Raw is CLOCK_MONOTONIC_RAW: the hardware's rate, not slewed. Where there is none it equals Mono.
	Raw time.Duration
	// Boot is Mono, and suspended time as well. Where no clock counts that, it is the wall clock.
	Boot time.Duration
}

// LeaderSince is the time since an earlier instant for somebody who must not act too long: the largest progress while
// awake, and the time asleep on top. The latter is by how much Boot ran ahead of Mono. It is not enough to look at Boot
// alone, which a time daemon slews together with Mono: it shows the sleep and hides part of the time awake.
func (r Instant) LeaderSince(s Instant) time.Duration {
	awake := max(r.Mono-s.Mono, r.Raw-s.Raw)
	asleep := (r.Boot - s.Boot) - (r.Mono - s.Mono)
	return awake + max(0, asleep)
}

// FollowerSince is the time since an earlier instant for somebody who must not act too soon: the smallest progress.
func (r Instant) FollowerSince(s Instant) time.Duration {
	return min(r.Mono-s.Mono, r.Raw-s.Raw)
}

// Moment is what a wall clock showed, in a third of the memory: nanoseconds since 1970. Zero is no time at all.
type Moment int64

// MomentOf returns the moment of a time of day.
func MomentOf(wall time.Time) Moment {
	if wall.IsZero() {
		return 0
	}
	return Moment(wall.UnixNano())
}

// Time returns the time of day.
func (m Moment) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m))
}

// Clock is where an election gets its time from. All methods may be called concurrently.
type Clock interface {
	// Now reads all clocks. It must be cheap: it is called for every question whether one may act.
	Now() Reading
	// AfterFunc calls f in its own goroutine after d of about CLOCK_MONOTONIC, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	// Drift is the bound r of rule L3: within it, local seconds per true second lie in [1-r, 1+r], for the clocks
	// that this implementation reads. 0.01 is one per cent.
	Drift() float64
}

// Standard is the clock that package time offers, and nothing else: for virtual time such as testing/synctest. It does
// not see a suspended machine as a leader should, so System is the one for real use.
type Standard struct{}

// base anchors the monotonic readings; only differences between readings count.
var base = time.Now()

// Now reads package time's monotonic clock into all fields.
func (Standard) Now() Reading {
	now := time.Now()
	d := now.Sub(base)
	return Reading{Instant{Mono: d, Raw: d, Boot: d}, now}
}

// AfterFunc is time.AfterFunc.
func (Standard) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// Drift is one per cent.
func (Standard) Drift() float64 { return 0.01 }
