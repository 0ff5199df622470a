package tenure

import (
	"strings"
	"sync"
	"time"
)

const (
	// A cause that goes on is logged again after this, and then after twice the time before.
	firstRepeat, lastRepeat = 10 * time.Second, time.Hour
	// quietFor ends a series of one cause: the next time it is news.
	quietFor = time.Minute
	// mostCauses bounds how many are kept apart.
	mostCauses = 64
)

// logLimiter decides which trouble is worth a line in the log. Siblings share one: an
// unreachable store is one cause for ten thousand elections.
type logLimiter struct {
	mu     sync.Mutex
	causes map[string]*series
}

// series is one cause that goes on.
type series struct {
	last, next time.Duration // when it was met, and when it is logged again
	pause      time.Duration
	times      int // since the last line
}

// admit returns how often the cause was met since it was logged last, this time included; 0 if it
// need not be logged yet.
func (r *logLimiter) admit(e Event, now time.Duration) (times int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cause := causeOf(e)
	s := r.causes[cause]
	if s == nil || now-s.last > quietFor {
		s = &series{next: now, pause: firstRepeat}
		r.keep(cause, s, now)
	}
	s.last = now
	s.times++
	if now < s.next {
		return 0
	}
	times, s.times = s.times, 0
	s.next = now + s.pause
	s.pause = min(2*s.pause, lastRepeat)
	return times
}

func (r *logLimiter) keep(cause string, s *series, now time.Duration) {
	for other, o := range r.causes {
		if now-o.last > quietFor {
			delete(r.causes, other)
		}
	}
	if r.causes == nil || len(r.causes) >= mostCauses {
		r.causes = map[string]*series{}
	}
	r.causes[cause] = s
}

// causeOf returns the part that reports of the same trouble share: no election, and no number, such
// as a port, a time or a request's.
func causeOf(e Event) string {
	if e.Cause == nil {
		return ""
	}
	var words []string
	for word := range strings.FieldsSeq(e.Cause.Error()) {
		if !strings.ContainsAny(word, "0123456789") && strings.Trim(word, `"':;,`) != e.Election {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}
