package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/trace"
	"github.com/tenure-go/tenure/nomination"
)

// Election is this process's part in one election: a candidate, an observer, or both. Its methods
// may be called concurrently. If a process has several candidates in one election, make an Election
// for each. Each Election is one member of the election. Two Elections of one name never lead at
// the same time, not even in one process and with the same ID. It needs no Close: it uses the store
// only while it campaigns, observes or has an open term, and while HandOver runs.
type Election struct{ runner runner }

var errNoStore = errors.New("tenure: the store is nil")

// New returns an election under the given name, which is the key in the store. It starts nothing
// and does not call the store. A *ConfigError lists all problems of the name and the config. If
// store is nil, the error reports only that.
func New(store driver.Store, name string, cfg Config) (*Election, error) {
	if store == nil {
		return nil, errNoStore
	}
	by := nominatorOf(&cfg, name)
	full := cfg.WithDefaults()
	if err := full.validate(driver.AbilitiesOf(store), name, &cfg, by != nil); err != nil {
		return nil, err
	}
	f := newShared(store, &cfg, &full)
	s := newSettings(f, &cfg, &full)
	s.machine.HasNominator = by != nil
	return newElection(f, name, s, by), nil
}

// nominatorOf returns the Nominator of one election, or nil.
func nominatorOf(c *Config, name string) nomination.Nominator {
	if c.Nomination.Nominator == nil {
		return nil
	}
	return c.Nomination.Nominator(name)
}

func newElection(f *shared, name string, s *settings, by nomination.Nominator) *Election {
	e := &Election{runner: runner{shared: f, key: name, settings: s}}
	m := &e.runner
	if by != nil {
		m.nominee = newNominee(by)
	}
	m.machine = trace.New(&s.machine, e.incarnation(), name, f.trace)
	if f.announcer != nil {
		m.presence = &presence{}
	}
	if f.metrics != nil {
		m.meter = newMeter(e, f.metrics)
	}
	return e
}

// Name returns the name of the election.
func (e *Election) Name() string { return e.runner.key }

// ID returns the ID of this candidate.
func (e *Election) ID() string { return e.runner.id }

// Campaign seeks leadership and returns the term when this process is elected. The context bounds
// only the wait: the term goes on until it is lost or resigned. When its work has stopped, call
// Term.Resign, even if the term is lost.
//
// It returns ctx's cause if ctx ends first; an error that wraps ErrDenied if the store denies
// reading and has never allowed it; or ErrRunning. After the end of ctx, Campaign may need up to a
// third of the lease, at most 2 s, to withdraw a claim whose outcome is unknown.
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	if !e.runner.busy.CompareAndSwap(false, true) {
		return nil, ErrRunning
	}
	defer e.runner.busy.Store(false)
	type result struct {
		term *Term
		err  error
	}
	won := make(chan result, 1)
	s := &seeker{ctx: ctx, once: true, onResult: func(t *Term, err error) { won <- result{t, err} }}
	if err := e.runner.campaign(s); err != nil {
		return nil, err
	}
	r := <-won
	return r.term, r.err
}

var errTermOpen = fmt.Errorf("%w: the last term is still open; call Resign when its work has stopped", ErrRunning)

// campaign makes the machine campaign. If a denial has stopped the observers and they have not
// noticed it yet, they observe again.
func (m *runner) campaign(s *seeker) error {
	open := false
	m.step(func(now clock.Reading) {
		if open = m.machine.Phase() != protocol.Idle; open {
			return
		}
		m.seeker, m.refused, s.runner = s, false, m
		m.cancels.add(s)
		m.machine.Observe(m.observers > 0)
		m.machine.Campaign(now, 0)
		if s.ctx.Err() != nil { // later, if the lease is free, a claim may have been sent
			m.withdraw(now)
		}
	})
	if open {
		return errTermOpen
	}
	return nil
}

// leave handles the end of a campaign's context: a candidate gives up, a leader is asked to finish.
// It may be called late, when another campaign has begun.
func (m *runner) leave(s *seeker) {
	m.step(func(now clock.Reading) {
		if m.seeker == s {
			m.withdraw(now)
		}
	})
}

// withdraw runs under the lock.
func (m *runner) withdraw(now clock.Reading) {
	m.machine.Withdraw(now)
	m.machine.Ask(now, ErrShutdown)
}

// stop does the same as leave before the context has ended. A leader, or a member whose work has
// not stopped yet, does not campaign again.
func (m *runner) stop() {
	m.step(func(now clock.Reading) {
		if s := m.seeker; s != nil && !s.once {
			s.stopped = true
			m.withdraw(now)
		}
	})
}

// finish reports to the machine that the work of a term has stopped. A context that has ended in
// the meantime starts no new campaign. The result is true for the first report; later ones have no
// effect.
func (m *runner) finish(t *Term, again bool, delay time.Duration) (first bool) {
	m.step(func(now clock.Reading) {
		if first = !t.finished; !first {
			return
		}
		t.finished = true
		if !again {
			m.dropSeeker()
		}
		_, lost := m.machine.Remaining(now, t.token)
		m.machine.Finish(now, "", again && !m.seeker.stopped && m.seeker.ctx.Err() == nil, delay)
		t.end(&lostError{cmp.Or(lost, ErrReleased)})
	})
	return first
}

// Lead is the work of a leader. When its context ends, begin nothing more, finish and return. A job
// that may still finish after that gets the context of the lease:
//
//	for ctx.Err() == nil {
//		job(term.LeaseContext())
//		select {
//		case <-tick.C:
//		case <-ctx.Done():
//		}
//	}
//	return nil
//
// Check ctx.Err before each job: a select picks at random between a tick and the end.
type Lead func(ctx context.Context, term *Term) error

// Run campaigns and calls lead whenever this process is elected, until ctx ends or lead returns
// before it is asked to finish:
//
//	lead returned                  Run
//	before it is asked to finish   releases the lease and returns that result
//	ErrDecline                     releases, waits for Tuning.Backoff, campaigns again; an error
//	                               that wraps it becomes an EventFailed
//	after a hand-over request      releases, gives the others a head start, campaigns again;
//	                               an error becomes an EventFailed
//	when no longer the nominee     as after a hand-over request
//	when no longer eligible        as after a hand-over request
//	after ctx had ended            releases and returns lead's error; nil if that only reports the
//	                               end of ctx or of lead's context
//	after the term was lost        campaigns again, whichever result lead returned; an error
//	                               becomes an EventFailed
//
// If ctx has ended, the row "after ctx had ended" decides, even if the term was lost or the work
// was overdue. No event reports an error that only says that the term or a context has ended.
//
// The lease is released only after lead has returned. Run then waits for the release as Term.Resign
// does, and up to 1 s for the last events to be delivered. A release that the store did not confirm
// is no error of Run: EventReleased has ErrUnconfirmed as its Cause. If lead does not return when
// it is asked to, neither does Run, and after FinishWithin the lease is left to expire. If the
// program has to end at that point, it may exit, since its work stops with it.
//
// If lead panics or calls runtime.Goexit, the contexts end and renewing stops. Nothing is released
// then, since other goroutines of the work may still run. Only Term.Resign releases the lease. The
// panic continues.
//
// Run returns nil if ctx ends while it campaigns; an error that wraps ErrDenied if the store denies
// reading and has never allowed it; or ErrRunning.
func (e *Election) Run(ctx context.Context, lead Lead) error {
	s := &session{handler: lead, steps: make(chan sessionStep, 1)}
	if err := s.begin(ctx, e); err != nil {
		return err
	}
	for {
		if more, err := (<-s.steps)(); !more {
			return err
		}
	}
}

// session is one Run, or one Join of a Group.
type session struct {
	seeker
	handler Handler
	steps   chan sessionStep // for Run to call
	done    chan error       // of Join, which has no goroutine of its own

	declined int           // in a row
	pause    time.Duration // before the next campaign
}

// sessionStep is one step of a session. It may block for long. If more is false, the session has
// ended with err.
type sessionStep func() (more bool, err error)

func (s *session) begin(ctx context.Context, e *Election) error {
	m := &e.runner
	if !m.busy.CompareAndSwap(false, true) {
		return ErrRunning
	}
	s.ctx = ctx
	s.onResult = func(t *Term, err error) {
		s.runStep(func() (bool, error) { return s.next(t, err) })
	}
	err := m.campaign(&s.seeker)
	if err != nil {
		m.busy.Store(false)
	}
	return err
}

// runStep passes the step to Run. For Join, which has no goroutine, it calls the step itself.
func (s *session) runStep(p sessionStep) {
	if s.steps != nil {
		s.steps <- p // there is never more than one
		return
	}
	more, err := false, error(&lostError{ErrAbandoned}) // the result if p calls Goexit
	defer func() {
		if !more {
			s.done <- err
		}
	}()
	more, err = p()
}

// next begins the work of a term, or handles the end of the campaign.
func (s *session) next(t *Term, err error) (more bool, result error) {
	if t != nil {
		return s.serve(t)
	}
	if s.ctx.Err() != nil {
		err = nil
	}
	return s.end(err)
}

// stopWork is what Handler.Elected returns for work that goes on.
type stopWork = func(context.Context) error

// serve begins the work of one term. If the work goes on, the session waits for the end of its
// context without a goroutine.
func (s *session) serve(t *Term) (more bool, result error) {
	var stop stopWork
	err := s.call(t, func() (err error) {
		stop, err = s.handler.Elected(t.context, t)
		return err
	})
	if err != nil || stop == nil {
		return s.afterWork(t, err)
	}
	s.runner.whenAsked(t, func() { s.runStep(func() (bool, error) { return s.finish(t, stop) }) })
	return true, nil
}

func (s *session) finish(t *Term, stop stopWork) (more bool, err error) {
	if s.runner.hasFinished(t) {
		return s.resignAndEnd(t, nil)
	}
	return s.afterWork(t, s.call(t, func() error { return stop(t.LeaseContext()) }))
}

// afterWork decides how to go on when the work has stopped. The state of the lease decides, not the
// kind of error, except for ErrDecline.
func (s *session) afterWork(t *Term, err error) (more bool, result error) {
	lost := t.Err() != nil
	asked := t.context.Err() != nil
	switch declined := s.declined > 0; {
	case s.ctx.Err() != nil:
		return s.resignAndEnd(t, s.withoutContextEnd(t, err))
	case s.runner.hasFinished(t): // the work itself has resigned
		return s.resignAndEnd(t, err)
	case lost, asked && !declined:
		s.report(t, err)
		s.declined, s.pause = 0, 0
	case declined: // goes on after the pause
		s.report(t, err)
	default:
		return s.resignAndEnd(t, err)
	}
	if !s.runner.finish(t, true, s.pause) {
		return s.resignAndEnd(t, err) // the work itself has resigned
	}
	return true, nil
}

// call runs work and then Backoff, which is also user code. If either panics, it abandons the term.
func (s *session) call(t *Term, work func() error) error {
	returned := false
	defer func() {
		if !returned {
			s.runner.abandon(t)
			s.runner.busy.Store(false)
		}
	}()
	err := work()
	s.countDeclined(errors.Is(err, ErrDecline))
	returned = true
	return err
}

// countDeclined counts the terms declined in a row, and sets the pause.
func (s *session) countDeclined(declined bool) {
	s.pause = 0
	if !declined {
		s.declined = 0
		return
	}
	s.declined++
	s.pause = max(0, s.runner.backoff()(s.declined))
}

// backoff returns the present Backoff. It is user code, so the caller calls it without the lock.
func (m *runner) backoff() func(int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings.backoff
}

// resignAndEnd releases the lease and ends the session.
func (s *session) resignAndEnd(t *Term, err error) (more bool, result error) {
	_ = t.Resign(context.WithoutCancel(s.ctx)) // its time is bounded
	return s.end(err)
}

func (s *session) end(err error) (more bool, result error) {
	s.runner.events.flush()
	s.runner.busy.Store(false)
	return false, err
}

// withoutContextEnd drops an error that only reports the end of lead's context or of Run's.
func (s *session) withoutContextEnd(t *Term, err error) error {
	for _, end := range []error{context.Canceled, ErrShutdown, context.Cause(t.context), context.Cause(s.ctx)} {
		if end != nil && errors.Is(err, end) {
			return nil
		}
	}
	return err
}

// report posts an event for an error that Run does not return.
func (s *session) report(t *Term, err error) {
	err = s.withoutContextEnd(t, err)
	if err == nil || errors.Is(err, ErrLost) {
		return
	}
	if err != ErrDecline { //nolint:errorlint // a plain ErrDecline needs no event
		s.runner.step(func(clock.Reading) { s.runner.report(EventFailed, t, err) })
	}
}

// abandon ends the term of work that panicked or called Goexit.
func (m *runner) abandon(t *Term) {
	m.step(func(now clock.Reading) {
		if !t.finished {
			m.machine.Abandon(now)
			m.dropSeeker()
		}
	})
}
