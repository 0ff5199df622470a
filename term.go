package tenure

import (
	"context"
	"sync"
	"time"
)

// Term is one period of leadership, from being elected until it is lost or resigned. Once over it stays over: winning
// again is a new Term with a higher token.
type Term struct {
	member *member
	token  uint64

	softly, hard     context.Context
	endSoft, endHard context.CancelCauseFunc
	closed           chan struct{} // the machine has left the term behind
	close            sync.Once
	unconfirmed      error // set before closed
	finished         bool  // its work has stopped; under the member's lock
}

type termKey struct{}

// newTerm makes the contexts of a term. They carry the values of the context that was campaigned with and not its end:
// that is a reason to leave, and leaving takes its time.
func newTerm(base context.Context, m *member, token uint64) *Term {
	t := &Term{member: m, token: token, closed: make(chan struct{})}
	base = context.WithValue(context.WithoutCancel(base), termKey{}, t)
	t.hard, t.endHard = context.WithCancelCause(base)
	t.softly, t.endSoft = context.WithCancelCause(t.hard)
	return t
}

// FromContext returns the term that a context of lead, or one made from it, belongs to; nil if there is none.
func FromContext(ctx context.Context) *Term {
	t, _ := ctx.Value(termKey{}).(*Term)
	return t
}

// Token is the fencing token: the number of this term. Every later term of the same election has a higher one. Hand it
// to the resource along with each write, and let the resource refuse a write whose token is lower than one it has seen.
func (t *Term) Token() uint64 { return t.token }

// Err is nil if this process may act for the election at this moment, from a fresh look at the clock. Otherwise it wraps
// ErrLost and the cause, and will for ever.
func (t *Term) Err() error {
	_, err := t.check()
	return err
}

// Remaining is how much longer this process may act if no renewal succeeds from now on; 0 if Err is not nil.
func (t *Term) Remaining() time.Duration {
	left, _ := t.check()
	return left
}

func (t *Term) check() (left time.Duration, err error) {
	t.member.step(func(now Reading) {
		left, err = t.member.machine.Remaining(now, t.token)
	})
	if err != nil {
		err = t.why(err)
	}
	return left, err
}

// why is the cause with which the contexts ended, which they have by now unless the term ends within this very call.
func (t *Term) why(now error) error {
	if cause := context.Cause(t.hard); cause != nil {
		return cause
	}
	return &lostError{now}
}

// Context is the hard one: it ends when the term is lost, before anybody else can be elected; when it is released; or when
// the work did not finish within FinishWithin of being asked. context.Cause says which.
func (t *Term) Context() context.Context { return t.hard }

// Soft is the context that Run calls lead with, for those who Campaign: it ends when the work should finish.
func (t *Term) Soft() context.Context { return t.softly }

// Do calls fn if at least need is left of the lease, with a context that ends with ctx or with the term, whichever is
// first. It returns fn's error; an error that wraps ErrLost if the term is over, or ErrTooLate if less is left, without
// having called fn.
func (t *Term) Do(ctx context.Context, need time.Duration, fn func(context.Context) error) error {
	left, err := t.check()
	if err != nil {
		return err
	}
	if left < need {
		return ErrTooLate
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.hard, func() { cancel(context.Cause(t.hard)) })()
	return fn(ctx)
}

// Resign says that the work of this term has stopped, and releases the lease so that a successor can start at once. It is
// for those who Campaign; Run does it by itself. It returns nil once the release is in the store or somebody else leads;
// ErrUnconfirmed if the store did not confirm within a third of the lease, at most 2 s (the lease then runs out by
// itself); or ctx's error if that ends first, while the release goes on. More calls change nothing and wait likewise.
// Work of Run that resigns all the same ends Run: it returns, once lead has, what lead does.
func (t *Term) Resign(ctx context.Context) error {
	t.member.finish(t, false, 0)
	select {
	case <-t.closed:
		return t.unconfirmed
	default:
	}
	select {
	case <-t.closed:
		return t.unconfirmed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// soft asks the work to finish.
func (t *Term) soft(cause error) { t.endSoft(cause) }

// end ends both contexts.
func (t *Term) end(cause error) {
	t.endSoft(cause)
	t.endHard(cause)
}

// resigned: the machine has released the term, or given up doing so.
func (t *Term) resigned(unconfirmed error) {
	t.close.Do(func() {
		t.end(&lostError{ErrReleased})
		t.unconfirmed = unconfirmed
		close(t.closed)
	})
}
