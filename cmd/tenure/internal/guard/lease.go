//go:build unix

package guard

import (
	"time"

	"github.com/tenure-go/tenure/clock"
)

// lease is the deadline of the command, as the guard knows it.
type lease struct {
	question uint64 // the number of the last question
	asked    clock.Reading

	known bool
	from  clock.Reading // counted from here
	left  time.Duration
	stop  time.Duration
}

// ask notes the time of a new question, and returns its number.
func (l *lease) ask(now clock.Reading) uint64 {
	l.question, l.asked = l.question+1, now
	return l.question
}

// answer takes the time that remained at some moment after the question. It may be less than
// before. It ignores answers to earlier questions. It also ignores that no time is left if the
// deadline had passed before the question: otherwise the time to stop would begin again.
func (l *lease) answer(a left) {
	if a.Question != l.question || a.Left <= 0 && l.known && l.over(l.asked) <= 0 {
		return
	}
	l.known, l.from, l.left, l.stop = true, l.asked, max(a.Left, 0), a.Stop
}

// forget drops the remaining time before the next command, as it may be that of another term.
func (l *lease) forget() { l.known = false }

// over returns the time until the lease's own deadline.
func (l *lease) over(now clock.Reading) time.Duration {
	return l.left - now.LeaderSince(l.from.Instant)
}

// kill returns the time until SIGKILL.
func (l *lease) kill(now clock.Reading) time.Duration { return l.over(now) + l.stop - Reserve(l.stop) }

// Reserve returns the last part of StopWithin, which is reserved for SIGKILL: a quarter, at most a
// second. The guard sends SIGKILL when it begins. After half of it the kernel's timer kills a guard
// that has not run since the lease was over, and after all of it one that has not sent SIGKILL. An
// overloaded machine was seen to need more than 0.3 s.
func Reserve(stop time.Duration) time.Duration { return min(stop/4, time.Second) }
