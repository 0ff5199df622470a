package tenure

import (
	"context"
	"errors"
)

// stay is the result of Stay.
type stay struct{ finish Lead }

// Error states that the term goes on, for a caller that prints it.
func (*stay) Error() string { return "tenure: the term goes on" }

// Stay is returned by lead to keep leading without a blocked goroutine. The term goes on and its
// lease is renewed, while the work that lead has begun runs elsewhere, until it should finish. Then
// finish is called, once, in its own goroutine or in that of Run, and its result counts as lead's.
// Use it in a process that leads thousands of elections.
//
// The context of finish is the hard one: while it is open the lease is renewed, for FinishWithin at
// most. If it has ended, the term is lost. The soft context is the term's Soft: context.Cause of it
// tells why the work should finish. When finish returns, the work must have stopped wherever it
// runs, since the lease is released then. A nil finish is for work that needs no end.
//
// Work that ends by itself calls Resign when it has stopped: that ends Run, which returns nil, and
// finish is not called.
func Stay(finish Lead) error {
	if finish == nil {
		finish = func(context.Context, *Term) error { return nil }
	}
	return &stay{finish}
}

// Stays reports whether lead has returned Stay, and returns its finish, which is not nil. Use it in
// a wrapper of a Lead that must know when its work ends.
func Stays(err error) (finish Lead, ok bool) {
	var s *stay
	if !errors.As(err, &s) {
		return nil, false
	}
	return s.finish, true
}

// onSoftEnd stores a function to call when the work of the term should finish, which may be now.
func (m *runner) onSoftEnd(t *Term, finish func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t.onSoftEnd = finish
	if cause := context.Cause(t.softly); cause != nil {
		t.soft(cause)
	}
}

// hasFinished reports whether the work of the term is known to have stopped.
func (m *runner) hasFinished(t *Term) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return t.finished
}
