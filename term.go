package tenure

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/bridge"
)

var _ driver.Term = (*Term)(nil)

// Term is one period of leadership, from the election until it is lost or resigned. A term that is
// over stays over: winning again is a new Term with a higher token.
//
// A nil Term is over. FromContext returns a nil Term for a context that does not come from a term.
// The methods of a nil Term return an error that wraps ErrLost, the token 0, the name "", contexts
// that have ended, and a closed channel.
type Term struct {
	runner *runner
	token  uint64

	values  context.Context // the context of the campaign, for its values
	context context.Context // the one that Lead receives
	endWork context.CancelCauseFunc

	// The fields below are under the runner's lock. Those that only some terms need are made when
	// needed.
	lease            *leaseContext // nil: not requested yet
	lost             error         // why the term is over; nil: it is not
	remainingChanged chan struct{} // closed when Remaining changes
	remainingChanges uint32        // how often Remaining has changed
	finished         bool          // its work has stopped
	resignDone       bool          // the release is over
	unconfirmed      error         // the result of Resign
	resignClosed     chan struct{} // closed when resignDone is set
	whenAsked        func()        // stops the work when it should finish; nil for a Lead
}

// leaseContext is the result of LeaseContext, and how it ends.
type leaseContext struct {
	ctx context.Context
	end context.CancelCauseFunc
}

type termKey struct{}

// contextParent is the parent of a term's contexts. They carry the values of the campaign's
// context, but do not end with it: its end at most asks the work to finish.
type contextParent struct{ *Term }

func (contextParent) Deadline() (none time.Time, ok bool) { return none, false }
func (contextParent) Done() <-chan struct{}               { return nil }
func (contextParent) Err() error                          { return nil }

func (r contextParent) Value(key any) any {
	if key == (termKey{}) {
		return r.Term
	}
	return r.values.Value(key)
}

func newTerm(base context.Context, m *runner, token uint64) *Term {
	t := &Term{runner: m, token: token, values: base, remainingChanges: m.machine.Moves()}
	t.context, t.endWork = context.WithCancelCause(contextParent{t})
	return t
}

// FromContext returns the term of a context that Context or LeaseContext returned, or of a context
// derived from one. It returns nil and false for any other context.
func FromContext(ctx context.Context) (*Term, bool) {
	t, ok := ctx.Value(termKey{}).(*Term)
	return t, ok
}

// Term returns the open term of this candidate. A term is open from when this candidate is elected
// until its work has stopped and its release is over. Use it where no context of the term is at
// hand, such as in a health handler. The term may be lost already: check Term.Err. If no term is
// open, the result is nil and false.
func (e *Election) Term() (*Term, bool) {
	m := &e.runner
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.term, m.term != nil
}

// errNoTerm is the cause for a nil Term.
var errNoTerm = &lostError{errors.New("there is no term: the context is not that of a term")}

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
// driver/kafkalog/fenced do so for messages, and sqlstore.OpenFence for transactions;
// docs/guarantees.md has the condition for other SQL.
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

func init() {
	bridge.Renewed = func(term any) <-chan struct{} { return term.(*Term).renewed() }
	bridge.LeastLease = func(config any, above, took time.Duration) time.Duration {
		return leastLease(config.(Config), above, took)
	}
	bridge.FlushTrace = func(election any, within time.Duration) { election.(*Election).runner.trace.Flush(within) }
	bridge.FactsOf = func(term any) bridge.Facts { return term.(*Term).runner.facts() }
}

func (m *runner) facts() bridge.Facts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bridge.Facts{
		ID: m.id, Clock: m.clock, Attempt: m.machine.Attempt(), Lease: m.machine.LongestLease(),
		HistoryChanged: m.machine.HistoryChanged().Time(),
	}
}

// renewed is timing.Renewed.
func (t *Term) renewed() <-chan struct{} {
	if t == nil {
		return ended().Done()
	}
	t.runner.mu.Lock()
	defer t.runner.mu.Unlock()
	return signal(&t.remainingChanged, t.lost != nil)
}

// signal returns the channel c, and makes it if it is nil. It is closed if the event has happened.
func signal(c *chan struct{}, happened bool) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
		if happened {
			close(*c)
		}
	}
	return *c
}

// closeSignal closes the channel of signal, if it was made.
func closeSignal(c chan struct{}) {
	if c != nil {
		close(c)
	}
}

// noteRemaining closes the channel of renewed after a change.
func (t *Term) noteRemaining(moves uint32) {
	if moves != t.remainingChanges && t.lost == nil {
		t.remainingChanges = moves
		closeSignal(t.remainingChanged)
		t.remainingChanged = nil
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
		err = t.lostCause(err)
	}
	return left, err
}

// lostCause returns the cause with which the contexts ended. They have ended already, unless the
// term ends in this very call.
func (t *Term) lostCause(now error) error {
	t.runner.mu.Lock()
	defer t.runner.mu.Unlock()
	if t.lost != nil {
		return t.lost
	}
	return &lostError{now}
}

// Context returns the context that Run passes to lead. It ends when the work should finish: the
// program shuts down, a hand-over was requested, this candidate is no longer the nominee or no
// longer eligible, or the term is lost or resigned. context.Cause returns the reason. Use it after
// Campaign. The end of Campaign's context does not end it.
func (t *Term) Context() context.Context {
	if t == nil {
		return ended()
	}
	return t.context
}

// LeaseContext returns a context that is open as long as the lease protects the work. It ends when
// the term is lost, before another candidate can be elected; when the work has stopped, before the
// release; or when the work did not finish within FinishWithin of being asked. Its context.Cause
// wraps ErrLost and the reason. Like Context it carries the values of the context of Run, Join or
// Campaign, but not the end and the deadline of that context.
func (t *Term) LeaseContext() context.Context {
	if t == nil {
		return ended()
	}
	t.runner.mu.Lock()
	defer t.runner.mu.Unlock()
	if t.lease == nil {
		t.lease = &leaseContext{}
		t.lease.ctx, t.lease.end = context.WithCancelCause(contextParent{t})
		if t.lost != nil {
			t.lease.end(t.lost)
		}
	}
	return t.lease.ctx
}

// Do calls fn if Remaining is at least need, with a context that ends with ctx or with the term,
// whichever is first. With lead's context as ctx, the context of fn also ends when the work should
// finish. Need is no time limit of fn: give ctx a deadline for that. Do returns fn's error.
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
	lease := t.LeaseContext()
	defer context.AfterFunc(lease, func() { cancel(context.Cause(lease)) })()
	return fn(ctx)
}

// Resign reports that the work of this term has stopped, and releases the lease so that a successor
// can start at once. Call it after Campaign; Run and Join release by themselves.
//
// It returns nil when the store has confirmed the release. It returns ErrUnconfirmed if the key no
// longer holds the record of this leader, or if no confirmation comes within the shorter of 2 s and
// a third of the lease. A lease that is not released expires by itself. If the term was lost
// before, Resign returns nil instead of ErrUnconfirmed. It returns ctx's cause if ctx ends first;
// the release goes on. More calls change nothing and wait in the same way. If the work of Run calls
// it, Run ends once lead has returned, with lead's result.
func (t *Term) Resign(ctx context.Context) error {
	if t == nil {
		return errNoTerm
	}
	t.runner.finish(t, false, 0)
	closed := t.resignSignal()
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

// resignSignal returns a channel that is closed when the release is over.
func (t *Term) resignSignal() <-chan struct{} {
	t.runner.mu.Lock()
	defer t.runner.mu.Unlock()
	return signal(&t.resignClosed, t.resignDone)
}

// askToFinish ends the context of the work, and stops work that has no goroutine.
func (t *Term) askToFinish(cause error) {
	t.endWork(cause)
	if stop := t.whenAsked; stop != nil {
		t.whenAsked = nil
		go stop()
	}
}

// end ends both contexts, and the wait for renewals.
func (t *Term) end(cause error) {
	if t.lost == nil {
		t.lost = cause
		t.runner.meter.ended(cause, context.Cause(t.context))
		closeSignal(t.remainingChanged)
	}
	t.askToFinish(cause)
	if t.lease != nil {
		t.lease.end(cause)
	}
}

// endResign ends the waits of Resign: the term is released, or the release was given up.
func (t *Term) endResign(unconfirmed error) {
	if t.resignDone {
		return
	}
	t.end(&lostError{ErrReleased})
	t.resignDone, t.unconfirmed = true, unconfirmed
	closeSignal(t.resignClosed)
}
