package tenure

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
)

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

// serve begins the work of one term. If Elected returns nil, the session waits for the end of the
// soft context without a goroutine.
func (s *session) serve(t *Term) (more bool, result error) {
	switch err := s.call(t.softContext, t, s.handler.Elected); {
	case errors.Is(err, errFinished):
		return s.afterWork(t, nil)
	case err != nil:
		return s.afterWork(t, err)
	}
	s.runner.onSoftEnd(t, s)
	return true, nil
}

// stopWork calls Stop in this goroutine.
func (s *session) stopWork(t *Term) {
	s.runStep(func() (bool, error) { return s.finish(t) })
}

func (s *session) finish(t *Term) (more bool, err error) {
	if s.runner.hasFinished(t) {
		return s.resignAndEnd(t, nil)
	}
	return s.afterWork(t, s.call(t.Context(), t, s.handler.Stop))
}

// afterWork decides how to go on when the work has stopped. The state of the lease decides, not the
// kind of error, except for ErrDecline.
func (s *session) afterWork(t *Term, err error) (more bool, result error) {
	lost := t.Err() != nil
	asked := t.softContext.Err() != nil
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
func (s *session) call(ctx context.Context, t *Term, work func(context.Context, *Term) error) error {
	returned := false
	defer func() {
		if !returned {
			s.runner.abandon(t)
			s.runner.busy.Store(false)
		}
	}()
	err := work(ctx, t)
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
	for _, end := range []error{context.Canceled, ErrShutdown, context.Cause(t.softContext), context.Cause(s.ctx)} {
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
