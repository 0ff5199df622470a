package tenure

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
)

var _ driver.Term = (*Term)(nil)

// Term is one period of leadership, from the election until it is lost or resigned. A term that is
// over stays over: winning again is a new Term with a higher token.
//
// A nil Term is over. FromContext returns one for a foreign context. The methods of a nil Term
// return an error that wraps ErrLost, the token 0, the name "", contexts that have ended, and a
// closed channel.
type Term struct {
	runner *runner
	token  uint64

	values  context.Context // has those of the context that was campaigned with
	softly  context.Context
	endSoft context.CancelCauseFunc

	// The fields below are under the runner's lock. Those that not every term needs are made on
	// use.
	hard        *scope        // nil: not requested yet
	lost        error         // why it is over; nil: it is not
	moved       chan struct{} // closed when Remaining changes
	moves       uint32        // how often it did
	finished    bool          // its work has stopped
	behind      bool          // the machine has left it behind
	unconfirmed error         // set before that
	closed      chan struct{} // closed after that
	session     *session      // to call Stop when the work should finish; nil: it needs no call
}

// scope is the hard context, and how it ends.
type scope struct {
	ctx context.Context
	end context.CancelCauseFunc
}

type termKey struct{}

// root is a term as the parent of its contexts. They carry the values of the context of the
// campaign, but not its end: that is a reason to leave, and leaving takes time.
type root struct{ *Term }

func (root) Deadline() (none time.Time, ok bool) { return none, false }
func (root) Done() <-chan struct{}               { return nil }
func (root) Err() error                          { return nil }

func (r root) Value(key any) any {
	if key == (termKey{}) {
		return r.Term
	}
	return r.values.Value(key)
}

func newTerm(base context.Context, m *runner, token uint64) *Term {
	t := &Term{runner: m, token: token, values: base, moves: m.machine.Moves()}
	t.softly, t.endSoft = context.WithCancelCause(root{t})
	return t
}

// FromContext returns the term of a soft or hard context, or of a context derived from one. It
// returns nil and false for any other context.
func FromContext(ctx context.Context) (*Term, bool) {
	t, ok := ctx.Value(termKey{}).(*Term)
	return t, ok
}

// Term returns the open term of this candidate. A term is open from the election until its work has
// stopped and its release is over. Use it where no context of the term is at hand, such as in a
// health handler. The term may be lost already: check Term.Err. If no term is open, the result is
// nil and false.
func (e *Election) Term() (*Term, bool) {
	m := &e.runner
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.term, m.term != nil
}

// errNoTerm is the cause for a nil Term.
var errNoTerm = &lostError{errors.New("there is no term: this context is not one of lead's or Term.Context's")}

// ended returns the context of a nil term.
func ended() context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	end(errNoTerm)
	return ctx
}

// Token returns the fencing token: the number of this term. Every later term of the same election
// has a higher one. Numbers are skipped, and on many stores even the first one is large, but all
// are below 2^53. Pass the token to the resource with each write, and let the resource refuse a
// write whose token is lower than one it has seen. Packages driver/natskv/fenced and
// driver/kafkalog/fenced do so for messages; docs/guarantees.md has the condition for SQL.
func (t *Term) Token() uint64 {
	if t == nil {
		return 0
	}
	return t.token
}

// Election returns the name of the term's election.
func (t *Term) Election() string {
	if t == nil {
		return ""
	}
	return t.runner.key
}

// Err reads the clock and returns nil if this process may act for the election at this moment.
// Otherwise it returns an error that wraps ErrLost and the cause, now and in every later call.
func (t *Term) Err() error {
	_, err := t.check()
	return err
}

// Remaining returns how much longer this process may act if no renewal succeeds from now on. It is
// 0 if Err is not nil.
func (t *Term) Remaining() time.Duration {
	left, _ := t.check()
	return left
}

// Renewed returns a channel that is closed when Remaining may have changed by more than the passing
// of time: when a renewal is sent or confirmed, or the term has ended. Use it if another process,
// such as a guard, holds the deadline. Call it before Remaining, and no change is missed.
func (t *Term) Renewed() <-chan struct{} {
	if t == nil {
		return ended().Done()
	}
	t.runner.mu.Lock()
	defer t.runner.mu.Unlock()
	return signal(&t.moved, t.lost != nil)
}

// signal returns a channel that is closed when something has happened. It makes a missing one.
func signal(c *chan struct{}, happened bool) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
		if happened {
			close(*c)
		}
	}
	return *c
}

// give wakes the waiters, if there are any.
func give(c chan struct{}) {
	if c != nil {
		close(c)
	}
}

// move wakes the waiters of Renewed.
func (t *Term) move(moves uint32) {
	if moves != t.moves && t.lost == nil {
		t.moves = moves
		give(t.moved)
		t.moved = nil
	}
}

func (t *Term) check() (left time.Duration, err error) {
	if t == nil {
		return 0, errNoTerm
	}
	t.runner.step(func(now clock.Reading) {
		left, err = t.runner.machine.Remaining(now, t.token)
	})
	if err != nil {
		err = t.why(err)
	}
	return left, err
}

// why is the cause of the end of the contexts. They have ended by now unless the term ends in this
// very call.
func (t *Term) why(now error) error {
	t.runner.mu.Lock()
	defer t.runner.mu.Unlock()
	if t.lost != nil {
		return t.lost
	}
	return &lostError{now}
}

// Context returns the hard context. It ends when the term is lost, before another candidate can be
// elected; when the work has stopped, before the release; or when the work did not finish within
// FinishWithin of being asked. Its context.Cause wraps ErrLost and the reason. Like the soft
// context it carries the values of the context of Run, Join or Campaign, without its end and
// deadline.
func (t *Term) Context() context.Context {
	if t == nil {
		return ended()
	}
	t.runner.mu.Lock()
	defer t.runner.mu.Unlock()
	if t.hard == nil {
		t.hard = &scope{}
		t.hard.ctx, t.hard.end = context.WithCancelCause(root{t})
		if t.lost != nil {
			t.hard.end(t.lost)
		}
	}
	return t.hard.ctx
}

// Soft returns the soft context, which Run passes to lead. It ends when the work should finish. Use
// it after Campaign. The end of Campaign's context does not end it.
func (t *Term) Soft() context.Context {
	if t == nil {
		return ended()
	}
	return t.softly
}

// Do calls fn if Remaining is at least need, with a context that ends with ctx or with the term,
// whichever is first. With the soft context as ctx, the context of fn also ends when the work
// should finish. Need is no time limit of fn: give ctx a deadline for that. Do returns fn's error.
// Without calling fn it returns an error that wraps ErrLost if the term is over, or ErrTooLate if
// less than need remains.
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
	hard := t.Context()
	defer context.AfterFunc(hard, func() { cancel(context.Cause(hard)) })()
	return fn(ctx)
}

// Resign reports that the work of this term has stopped, and releases the lease so that a successor
// can start at once. Call it after Campaign; Run and Join release by themselves.
//
// It returns nil when the store has confirmed the release. It returns ErrUnconfirmed if that takes
// more than a third of the lease, at most 2 s, or if the store shows another record first. A lease
// that is not released expires by itself. If the term was lost before, Resign returns nil in all
// these cases. It returns ctx's cause if ctx ends first; the release goes on. More calls change
// nothing and wait in the same way. If the work of Run calls it, Run ends once lead has returned,
// with lead's result.
func (t *Term) Resign(ctx context.Context) error {
	if t == nil {
		return errNoTerm
	}
	t.runner.finish(t, false, 0)
	closed := t.gone()
	select {
	case <-closed:
		return t.unconfirmed
	default:
	}
	select {
	case <-closed:
		return t.unconfirmed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// gone returns a channel that is closed when the machine has left the term behind.
func (t *Term) gone() <-chan struct{} {
	t.runner.mu.Lock()
	defer t.runner.mu.Unlock()
	return signal(&t.closed, t.behind)
}

// soft asks the work to finish.
func (t *Term) soft(cause error) {
	t.endSoft(cause)
	if s := t.session; s != nil {
		t.session = nil
		go s.stopWork(t)
	}
}

// end ends both contexts, and the wait for renewals.
func (t *Term) end(cause error) {
	if t.lost == nil {
		t.lost = cause
		t.runner.meter.ended(cause)
		give(t.moved)
	}
	t.soft(cause)
	if t.hard != nil {
		t.hard.end(cause)
	}
}

// resigned: the machine has released the term, or given up doing so.
func (t *Term) resigned(unconfirmed error) {
	if t.behind {
		return
	}
	t.end(&lostError{ErrReleased})
	t.behind, t.unconfirmed = true, unconfirmed
	give(t.closed)
}
