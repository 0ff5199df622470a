// Package clock reads the clocks that measure a lease.
//
// Programs rarely need it: elections use Default unless Config.Clock of package tenure says
// otherwise. A Clock of your own embeds another Clock, such as System{}, and changes its readings:
//
//	type slow struct{ clock.Clock }
//
//	func (s slow) Now() clock.Reading {
//		r := s.Clock.Now()
//		r.Mono, r.Raw, r.Boot = r.Mono/2, r.Raw/2, r.Boot/2
//		return r
//	}
//
// No single clock of a machine is safe for both sides of a lease. A time daemon may slew
// CLOCK_MONOTONIC by several percent, and only CLOCK_BOOTTIME counts the time of a suspended
// laptop. So a reading holds several clocks. A leader uses the clock that moved most since it sent
// its write, and adds the time that the machine slept. A follower uses the clock that moved least
// since it saw that write. Readings of different processes are never compared.
package clock

import (
	"bytes"
	"runtime"
	"time"
)

// Reading is one reading of all clocks of this process.
type Reading struct {
	Instant
	// Wall is the time of day. It goes into records and events, and no decision depends on this
	// field.
	Wall time.Time
}

// Instant is the part of a reading on which decisions depend. Its fields mean nothing by
// themselves: compare two Instants of one process with LeaderSince or FollowerSince.
type Instant struct {
	// Mono is CLOCK_MONOTONIC or its like: it never steps, but a time daemon may change its rate.
	Mono time.Duration
	// Raw is CLOCK_MONOTONIC_RAW: the hardware's rate, not slewed. Where there is none it equals
	// Mono.
	Raw time.Duration
	// Boot is Mono plus the time that the machine was suspended. Where no clock counts suspended
	// time, Boot is the wall clock.
	Boot time.Duration
}

// LeaderSince returns the time since an earlier instant, for use by a leader, which must not act
// too long. It is the time awake by Mono or Raw, whichever moved more, plus the time asleep. The
// time asleep is how far Boot ran ahead of Mono. Boot alone is not enough: a time daemon slews it
// together with Mono, so it shows the sleep and hides part of the time awake.
func (r Instant) LeaderSince(s Instant) time.Duration {
	awake := max(r.Mono-s.Mono, r.Raw-s.Raw)
	asleep := (r.Boot - s.Boot) - (r.Mono - s.Mono)
	return awake + max(0, asleep)
}

// FollowerSince returns the time since an earlier instant, for use by a follower, which must not
// act too soon. It is the time by Mono or Raw, whichever moved less. Boot does not count.
func (r Instant) FollowerSince(s Instant) time.Duration {
	return min(r.Mono-s.Mono, r.Raw-s.Raw)
}

// Clock gives an election its time: see System and Standard. All methods may be called
// concurrently. They must not block or call the election, which calls Now under a lock.
type Clock interface {
	// Now reads all clocks. It must be cheap: each check of leadership calls it.
	Now() Reading
	// AfterFunc calls f in its own goroutine after the time d, approximately by CLOCK_MONOTONIC,
	// unless stop is called first.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	// Drift returns the bound r on the error of the clocks' rates: local seconds per true second
	// lie in [1-r, 1+r]. 0.01 is one percent. It is the default of Tuning.Drift of package tenure.
	// Rule L3 of docs/protocol.md uses it.
	Drift() float64
}

// Standard reads package time alone. Use it for virtual time, such as in testing/synctest. It does
// not count the time that a machine is suspended, but a leader must. In production, use System.
type Standard struct{}

// base anchors the monotonic readings; only differences between readings count.
var base = time.Now()

// Now reads package time's monotonic clock into all fields.
func (Standard) Now() Reading {
	now := time.Now()
	d := now.Sub(base)
	return Reading{Instant{Mono: d, Raw: d, Boot: d}, now}
}

// AfterFunc calls time.AfterFunc.
func (Standard) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// Drift returns 0.01.
func (Standard) Drift() float64 { return 0.01 }

// Default returns the clock of elections whose Config has none: Standard within a bubble of
// testing/synctest, where time is virtual, and System everywhere else.
func Default() Clock {
	if inBubble() {
		return Standard{}
	}
	return System{}
}

// inBubble reports whether the calling goroutine is in a bubble. Only the head of its stack trace
// shows that. No goroutine of a program in production is in one, so System is never missed there.
func inBubble() bool {
	var head [128]byte
	trace := head[:runtime.Stack(head[:], false)]
	line, _, _ := bytes.Cut(trace, []byte("\n"))
	// With GODEBUG=tracebacklabels=1, text of the program follows.
	state, _, _ := bytes.Cut(line, []byte(" labels:"))
	return bytes.Contains(state, []byte("synctest bubble"))
}
