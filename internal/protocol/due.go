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

// byLeader returns the instant from + after, counted as a leader counts.
func byLeader(from clock.Instant, after time.Duration) due { return due{later(from, after), leaders} }

// byFollower returns the instant from + after, counted as a follower counts.
func byFollower(from clock.Instant, after time.Duration) due {
	return due{later(from, after), followers}
}

// later returns i + d on every clock. LeaderSince and FollowerSince of the result are smaller by d
// than those of i, and negative while the result is in the future.
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

// wakeup keeps the earliest of several times.
type wakeup struct {
	d   time.Duration // from now
	set bool
}

// in sets the wakeup to go off after d at the latest.
func (w *wakeup) in(d time.Duration) {
	if d = max(d, 0); !w.set || d < w.d {
		w.d, w.set = d, true
	}
}

// at sets the wakeup to go off at d at the latest.
func (w *wakeup) at(now clock.Reading, d due) { w.in(d.left(now.Instant)) }

// reached reports whether d has passed. If not, it sets the wakeup for d.
func (w *wakeup) reached(now clock.Reading, d due) bool { return w.over(d.left(now.Instant)) }

// over reports whether no time is left. If some is left, it sets the wakeup to go off after it.
func (w *wakeup) over(left time.Duration) bool {
	if left > 0 {
		w.in(left)
	}
	return left <= 0
}
