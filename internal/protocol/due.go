package protocol

import (
	"time"

	"github.com/tenure-go/tenure/clock"
)

// due is an instant at which something is due, and by whose count of the time (L5).
type due struct {
	at clock.Instant
	by count
}

// count is how the time until an instant is counted.
type count uint8

const (
	leaders   count = iota // the most that has passed: it must not come too late
	followers              // the least that has passed: it must not come too soon
)

// byLeader is the instant a time after from, as a leader counts.
func byLeader(from clock.Instant, after time.Duration) due { return due{later(from, after), leaders} }

// byFollower is the instant a time after from, as a follower counts.
func byFollower(from clock.Instant, after time.Duration) due {
	return due{later(from, after), followers}
}

// later is i and d by every clock. LeaderSince and FollowerSince of it are less by d, and negative
// while it is yet to come.
func later(i clock.Instant, d time.Duration) clock.Instant {
	return clock.Instant{Mono: i.Mono + d, Raw: i.Raw + d, Boot: i.Boot + d}
}

// left is the time from now until d; 0 or less if it is over.
func (d *due) left(now clock.Instant) time.Duration {
	if d.by == leaders {
		return -now.LeaderSince(d.at)
	}
	return -now.FollowerSince(d.at)
}

// alarm keeps the earliest of several times.
type alarm struct {
	d   time.Duration
	set bool
}

// in has the alarm go off after d at the latest.
func (a *alarm) in(d time.Duration) {
	if d = max(d, 0); !a.set || d < a.d {
		a.d, a.set = d, true
	}
}

// at has the alarm go off at d at the latest.
func (a *alarm) at(now clock.Reading, d due) { a.in(d.left(now.Instant)) }

// reached reports whether d is over. While it is not, the alarm goes off at d at the latest.
func (a *alarm) reached(now clock.Reading, d due) bool { return a.over(d.left(now.Instant)) }

// over reports whether no time is left. While there is, the alarm goes off after it at the latest.
func (a *alarm) over(left time.Duration) bool {
	if left > 0 {
		a.in(left)
	}
	return left <= 0
}
