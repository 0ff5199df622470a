// Package reread reads credentials again before each use, because passwords and certificates are
// replaced while programs run. Use it where a client library asks for the credentials of its next
// connection. It keeps the last ones that it read, since a file may be gone or half-written at that
// moment.
package reread

import (
	"context"
	"strings"
	"sync"
)

// Source reads a value again for each use. It must be made by New. Its methods may be called from
// many goroutines.
type Source[T any] struct {
	read   func(context.Context) (T, error)
	report func(error)

	mu      sync.Mutex
	last    T
	trouble string // the last report, empty if the last read succeeded
}

// New returns a source, and reads nothing. The value first is in use until a read succeeds. Both
// functions may be called by many goroutines at once. If report is not nil, it is called with the
// error of a read that fails. It is called once while each read fails with the same error. Errors
// are the same if their texts differ in digits alone, such as the time of day.
func New[T any](first T, read func(context.Context) (T, error), report func(error)) *Source[T] {
	if report == nil {
		report = func(error) {}
	}
	return &Source[T]{read: read, report: report, last: first}
}

// Get reads the value. If that fails, it returns the value of the last read that succeeded.
func (s *Source[T]) Get(ctx context.Context) T {
	now, err := s.read(ctx)
	if err == nil {
		s.keep(now)
		return now
	}
	last, known := s.failed(strings.Map(withoutDigits, err.Error()))
	if !known {
		s.report(err)
	}
	return last
}

func withoutDigits(r rune) rune {
	if '0' <= r && r <= '9' {
		return -1
	}
	return r
}

func (s *Source[T]) keep(now T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.trouble = now, ""
}

// failed returns the last value, and whether this trouble was reported.
func (s *Source[T]) failed(trouble string) (last T, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known = s.trouble == trouble
	s.trouble = trouble
	return s.last, known
}
