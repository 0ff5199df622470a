// Package loglimit decides which reports of trouble get a line while one cause lasts.
package loglimit

import (
	"strings"
	"sync"
	"time"
)

const (
	// A lasting cause is reported again after this, and then after twice the time before.
	firstRepeat, lastRepeat = 10 * time.Second, time.Hour
	// quietFor ends a series of one cause: the next time it is news.
	quietFor = time.Minute
	// mostCauses bounds how many are kept apart.
	mostCauses = 64
)

// Limiter decides which trouble gets a line. The elections of a Group share one: an unreachable
// store is one cause for ten thousand elections. The zero value is ready for use.
type Limiter struct {
	mu     sync.Mutex
	causes map[string]*series
}

// series is one cause that goes on.
type series struct {
	last, next time.Duration // when it was met, and when it is reported again
	pause      time.Duration
	times      int // since the last line
}

// Admit returns how often the cause was met since it was told last, this time included; 0 if it
// need not be told yet. Now is the time on any clock that never goes back.
func (l *Limiter) Admit(cause string, now time.Duration) (times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.causes[cause]
	if s == nil || now-s.last > quietFor {
		s = &series{next: now, pause: firstRepeat}
		l.keep(cause, s, now)
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

// Joins counts a symptom of a cause that goes on, and returns false if that does not.
func (l *Limiter) Joins(cause string, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.causes[cause]
	if s == nil || now-s.last > quietFor {
		return false
	}
	s.times++
	return true
}

func (l *Limiter) keep(cause string, s *series, now time.Duration) {
	for other, o := range l.causes {
		if now-o.last > quietFor {
			delete(l.causes, other)
		}
	}
	if l.causes == nil || len(l.causes) >= mostCauses {
		l.causes = map[string]*series{}
	}
	l.causes[cause] = s
}

// Cause returns the part of a text that reports of the same trouble share: no election, and no
// number, such as a port, a time or a request's.
func Cause(text, election string) string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		if !strings.ContainsAny(word, "0123456789") && strings.Trim(word, `"':;,`) != election {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}
