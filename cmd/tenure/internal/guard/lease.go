//go:build unix

package guard

import (
	"time"

	"github.com/tenure-go/tenure/clock"
)

// lease is the deadline as the guard knows it.
type lease struct {
	question uint64 // the open one, or the last
	asked    clock.Reading

	known bool
	from  clock.Reading // counted from here
	left  time.Duration
	stop  time.Duration
}

// ask begins a question.
func (l *lease) ask(now clock.Reading) uint64 {
	l.question, l.asked = l.question+1, now
	return l.question
}

// answer takes the remaining time at some moment after the question. It may be less than was known.
// It ignores answers to earlier questions, and for a term whose deadline had passed before the
// question: expiry is a latch.
func (l *lease) answer(a left) {
	if a.Question != l.question || a.Left <= 0 && l.known && l.over(l.asked) <= 0 {
		return
	}
	l.known, l.from, l.left, l.stop = true, l.asked, max(a.Left, 0), a.Stop
}

// forget is for the next command: the known remaining time is of another term.
func (l *lease) forget() { l.known = false }

// over is the time until the lease's own deadline.
func (l *lease) over(now clock.Reading) time.Duration {
	return l.left - now.LeaderSince(l.from.Instant)
}

// kill is the time until SIGKILL.
func (l *lease) kill(now clock.Reading) time.Duration { return l.over(now) + l.stop - Reserve(l.stop) }

// Reserve is the last part of StopWithin, for killing. SIGKILL is sent when it begins. After half
// of it the kernel's timer kills a guard that has not sent it.
func Reserve(stop time.Duration) time.Duration { return min(stop/4, 100*time.Millisecond) }
