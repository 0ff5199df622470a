package tenure

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// Lead is the work of a leader. Its context is the soft one: when it ends, finish and return.
type Lead func(ctx context.Context, term *Term) error

// Run campaigns and calls lead whenever this process is elected, until ctx ends or lead returns
// without being asked:
//
//	lead returned when             Run
//	not asked: nil or an error     releases the lease and returns it
//	ErrDecline                     releases, backs off, campaigns again; an error that wraps it
//	                               becomes an event
//	Stay(finish)                   goes on leading; calls finish when the work should end, and
//	                               takes its result as lead's
//	asked to hand over             releases, gives the others a head start, campaigns again;
//	                               an error becomes an event
//	no longer the nominee          the same
//	no longer eligible             the same
//	ctx has ended                  releases; returns nil, or lead's error unless it is the context's
//	the term was lost              campaigns again, whichever result lead returned; an error of
//	                               its own becomes an event
//
// The lease is released only after lead has returned. If lead panics or calls runtime.Goexit, the
// contexts end and renewing stops. Nothing is released then, since other goroutines of the work may
// still run. The panic goes on.
//
// Run returns nil if ctx ended before an election, an error that wraps ErrDenied if reading
// was denied before it was ever allowed, ErrRunning, or ErrTermOpen.
func (e *Election) Run(ctx context.Context, lead Lead) error {
	s := &session{e: e, lead: lead, calls: make(chan sessionStep, 1)}
	if err := s.begin(ctx); err != nil {
		return err
	}
	for {
		if more, err := (<-s.calls)(); !more {
			return err
		}
	}
}

// Start is Run without a blocked goroutine: it returns at once and calls lead in a new goroutine,
// which lives as long as the term unless lead returns Stay. Use it in a process with thousands of
// elections. The channel receives Run's result, once, or an error that wraps ErrAbandoned if lead
// calls runtime.Goexit. The error is Run's ErrRunning or ErrTermOpen.
func (e *Election) Start(ctx context.Context, lead Lead) (<-chan error, error) {
	s := &session{e: e, lead: lead, done: make(chan error, 1)}
	return s.done, s.begin(ctx)
}

// Stop ends the Run or Start that is under way, as the end of its context would: a candidate gives up,
// and a leader is asked to finish, with ErrShutdown, and releases its lease. Then Run returns, or the
// channel of Start receives, nil or the error of a lead that was not asked. Stop does not wait for
// that. Where many elections share a context, it ends one of them. It has no effect on a Campaign, and
// none if nothing is under way.
func (e *Election) Stop() { e.runner.stop() }

// session is one Run or Start.
type session struct {
	seeker
	e     *Election
	lead  Lead
	calls chan sessionStep // to be called by Run
	done  chan error       // of Start, which has no goroutine of its own

	declined int           // in a row
	pause    time.Duration // before the next campaign
}

// sessionStep is one step of a session. It may take long. It returns the session's result if no step
// follows.
type sessionStep func() (more bool, err error)

func (s *session) begin(ctx context.Context) error {
	if !s.e.runner.busy.CompareAndSwap(false, true) {
		return ErrRunning
	}
	s.ctx = ctx
	s.won = func(t *Term, err error) {
		s.spawn(func() (bool, error) { return s.next(t, err) })
	}
	err := s.e.runner.campaign(&s.seeker)
	if err != nil {
		s.e.runner.busy.Store(false)
	}
	return err
}

// spawn lets Run call p, or calls it itself.
func (s *session) spawn(p sessionStep) {
	if s.calls != nil {
		s.calls <- p // there is never more than one
		return
	}
	more, err := false, error(&lostError{ErrAbandoned}) // should p call Goexit
	defer func() {
		if !more {
			s.done <- err
		}
	}()
	more, err = p()
}

// next serves a term, or handles the end of the campaign.
func (s *session) next(t *Term, err error) (more bool, result error) {
	if t != nil {
		return s.serve(t)
	}
	if s.ctx.Err() != nil {
		err = nil
	}
	return s.end(err)
}

// serve runs lead for one term. If lead stays, it runs finish when the term should end.
func (s *session) serve(t *Term) (more bool, result error) {
	err := s.call(t.softly, t, s.lead)
	finish, ok := Stays(err)
	if !ok {
		return s.afterWork(t, err)
	}
	s.e.runner.onSoftEnd(t, func() {
		s.spawn(func() (bool, error) { return s.finish(t, finish) })
	})
	return true, nil
}

func (s *session) finish(t *Term, finish Lead) (more bool, err error) {
	if s.e.runner.hasFinished(t) {
		return s.leave(t, nil)
	}
	return s.afterWork(t, s.call(t.Context(), t, finish))
}

// afterWork decides by the lease, not by the kind of error, how to go on when the work has stopped.
func (s *session) afterWork(t *Term, err error) (more bool, result error) {
	lost := t.Err() != nil
	asked := t.softly.Err() != nil
	switch declined := s.declined > 0; {
	case s.ctx.Err() != nil:
		return s.leave(t, s.withoutContextEnd(t, err))
	case lost, asked && !declined:
		s.report(t, err)
		s.declined, s.pause = 0, 0
	case declined: // goes on after the pause
		s.report(t, err)
	default:
		return s.leave(t, err)
	}
	if !s.e.runner.finish(t, true, s.pause) {
		return s.leave(t, err) // the work itself has resigned
	}
	return true, nil
}

// call runs work and then Backoff, which is also user code. The machine learns how they end.
func (s *session) call(ctx context.Context, t *Term, work Lead) error {
	returned := false
	defer func() {
		if !returned {
			s.e.runner.abandon(t)
			s.e.runner.busy.Store(false)
		}
	}()
	err := work(ctx, t)
	s.count(errors.Is(err, ErrDecline))
	returned = true
	return err
}

// count counts the terms declined in a row.
func (s *session) count(declined bool) {
	s.pause = 0
	if !declined {
		s.declined = 0
		return
	}
	s.declined++
	s.pause = max(0, s.e.runner.backoff()(s.declined))
}

// backoff is the present one. It is user code, so it is not called under the lock.
func (m *runner) backoff() func(int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings.backoff
}

// leave ends the session with a release.
func (s *session) leave(t *Term, err error) (more bool, result error) {
	_ = t.Resign(context.WithoutCancel(s.ctx)) // bounded by itself; unconfirmed, the lease runs out
	return s.end(err)
}

func (s *session) end(err error) (more bool, result error) {
	s.e.runner.events.flush()
	s.e.runner.busy.Store(false)
	return false, err
}

// withoutContextEnd drops an error that only reports the end of lead's context or of Run's.
func (s *session) withoutContextEnd(t *Term, err error) error {
	for _, end := range []error{context.Canceled, ErrShutdown, context.Cause(t.softly), context.Cause(s.ctx)} {
		if end != nil && errors.Is(err, end) {
			return nil
		}
	}
	return err
}

// report makes an event of an error that Run does not return.
func (s *session) report(t *Term, err error) {
	err = s.withoutContextEnd(t, err)
	if err == nil || errors.Is(err, ErrLost) {
		return
	}
	if err != ErrDecline { //nolint:errorlint // the bare one says nothing that need be told
		s.e.runner.step(func(clock.Reading) { s.e.runner.report(EventFailed, err) })
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
