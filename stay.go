package tenure

import (
	"context"
	"errors"
)

// stay is what Stay returns.
type stay struct{ finish Lead }

// Error says what became of the term, should somebody print it.
func (*stay) Error() string { return "tenure: the term goes on" }

// Stay is what lead returns to stay in office with no goroutine that waits: the term goes on, its lease is renewed, and what lead has
// begun is done elsewhere, until it should finish. Then finish is called, once, in a goroutine of its own or in that of Run,
// and what it returns counts as what lead returns. A process that leads ten thousand elections wants this.
//
// The context of finish is the hard one: until it ends the lease is still renewed, for FinishWithin at most, and if it has ended
// the term is lost. The soft one, of which context.Cause says why, is the term's Soft. When finish returns the work must have
// stopped, wherever it is done, since the lease is released then. Nil is for work that needs no end.
//
// Work that wants to end by itself calls Resign, when it has stopped: that ends Run, which returns nil, and finish is not called.
func Stay(finish Lead) error {
	if finish == nil {
		finish = func(context.Context, *Term) error { return nil }
	}
	return &stay{finish}
}

// Stays reports whether lead has returned Stay, and the finish that it gave, which is not nil: for those who wrap a Lead, and so have to know
// when its work ends.
func Stays(err error) (finish Lead, ok bool) {
	var s *stay
	if !errors.As(err, &s) {
		return nil, false
	}
	return s.finish, true
}

// keep has a function called when the work of the term should finish, which may be now.
func (m *member) keep(t *Term, finish func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t.stays = finish
	if cause := context.Cause(t.softly); cause != nil {
		t.soft(cause)
	}
}

// hasFinished reports whether it was said already that the work of a term has stopped.
func (m *member) hasFinished(t *Term) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return t.finished
}
