package protocol

import (
	"time"

	"github.com/tenure-go/tenure/clock"
)

// due is an instant at which an action is due, and how the time until then is counted (L5).
type due struct {
	at clock.Instant
	by count
}

// count says how the time until an instant is counted.
type count uint8

const (
	leaders   count = iota // the most that can have passed: the action must not be late
	followers              // the least that can have passed: the action must not be early
)

// byLeader returns from plus after, as a leader counts.
func byLeader(from clock.Instant, after time.Duration) due { return due{later(from, after), leaders} }

// byFollower returns from plus after, as a follower counts.
func byFollower(from clock.Instant, after time.Duration) due {
	return due{later(from, after), followers}
}

// later returns i plus d on every clock. A time counted from the result is d less than one counted
// from i: negative while the result is in the future.
func later(i clock.Instant, d time.Duration) clock.Instant {
	return clock.Instant{Mono: i.Mono + d, Raw: i.Raw + d, Boot: i.Boot + d}
}

// left returns the time from now until d; 0 or less if d has passed.
func (d *due) left(now clock.Instant) time.Duration {
	if d.by == leaders {
		return -now.LeaderSince(d.at)
	}
	return -now.FollowerSince(d.at)
}

// alarm keeps the earliest of several times.
type alarm struct {
	d   time.Duration // from now
	set bool
}

// in sets the alarm to go off after d at the latest.
func (a *alarm) in(d time.Duration) {
	if d = max(d, 0); !a.set || d < a.d {
		a.d, a.set = d, true
	}
}

// at sets the alarm to go off at d at the latest.
func (a *alarm) at(now clock.Reading, d due) { a.in(d.left(now.Instant)) }

// reached reports whether d has passed. If not, it sets the alarm for d.
func (a *alarm) reached(now clock.Reading, d due) bool { return a.over(d.left(now.Instant)) }

// over reports whether no time is left. If some is left, it sets the alarm to go off after it.
func (a *alarm) over(left time.Duration) bool {
	if left > 0 {
		a.in(left)
	}
	return left <= 0
}
