// Package loglimit decides which reports of trouble get a log line while one cause lasts.
package loglimit

import (
	"strings"
	"sync"
	"time"
)

const (
	// A lasting cause is reported again after firstRepeat, and then each time after twice the time
	// before, up to lastRepeat.
	firstRepeat, lastRepeat = 10 * time.Second, time.Hour
	// quietFor is the time without a report that ends a series: the next report gets a line at
	// once.
	quietFor = time.Minute
	// mostCauses bounds the number of causes that are counted separately.
	mostCauses = 64
)

// Limiter decides which trouble gets a log line. The elections of a Group share one: an unreachable
// store is one cause for ten thousand elections. The zero value is ready for use.
type Limiter struct {
	mu     sync.Mutex
	causes map[string]*series
}

// series counts the reports of one cause that lasts.
type series struct {
	last, next time.Duration // of the last report, and of the next line
	pause      time.Duration
	times      int // since the last line
}

// Admit counts a report of the cause. It returns the number of reports since the last line,
// this one included, or 0 if the report gets no line. Now is the time on any clock that never goes
// back.
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

// Joins counts a symptom of a cause that lasts, and returns false if the cause does not last.
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

// Cause returns the part of a text that all reports of the same trouble share. It leaves out the
// name of the election, and words with digits, such as a port, a time or the number of a request.
func Cause(text, election string) string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		if !strings.ContainsAny(word, "0123456789") && strings.Trim(word, `"':;,`) != election {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}
