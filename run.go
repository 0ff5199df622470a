package tenure

import (
	"context"
	"errors"
	"time"
)

// Lead is the work of a leader. Its context is the soft one: when it ends, finish and return.
type Lead func(ctx context.Context, term *Term) error

// Run campaigns and calls lead whenever this process is elected, until ctx ends or lead returns of its own accord:
//
//	lead returned when             Run
//	not asked: nil or an error     releases the lease and returns it
//	ErrDecline                     releases, backs off, campaigns again
//	asked to hand over             releases, gives the others a head start, campaigns again; an error becomes an event
//	ctx has ended                  releases; returns nil, or lead's error unless it is the context's
//	the term was lost              campaigns again, whatever lead returned
//
// The lease is released only after lead has returned. If lead panics or calls runtime.Goexit the contexts end and
// renewing stops, but nothing is released, since other goroutines of the work may still run; the panic goes on.
//
// Run returns nil if ctx ended before an election, an error that wraps driver.ErrDenied if reading was denied before it
// was ever allowed, ErrRunning, or ErrTermOpen.
func (e *Election) Run(ctx context.Context, lead Lead) error {
	won := make(chan func() bool, 1)
	s := session{e: e, ctx: ctx, lead: lead, spawn: func(f func() bool) { won <- f }}
	if err := s.begin(); err != nil {
		return err
	}
	for (<-won)() {
	}
	return s.result
}

// Start is Run without a goroutine that waits: it returns at once, and lead is called in a goroutine of its own that
// lives as long as the term. A process with ten thousand elections wants this. The channel receives what Run would have
// returned, once; an error that wraps ErrAbandoned if lead calls runtime.Goexit. The error is Run's ErrRunning or
// ErrTermOpen.
func (e *Election) Start(ctx context.Context, lead Lead) (<-chan error, error) {
	done := make(chan error, 1)
	s := &session{e: e, ctx: ctx, lead: lead}
	s.spawn = func(f func() bool) {
		more := false
		defer func() {
			if !more {
				done <- s.result
			}
		}()
		more = f()
	}
	return done, s.begin()
}

// session is one Run.
type session struct {
	e     *Election
	ctx   context.Context
	lead  Lead
	spawn func(func() bool) // calls its argument, in a goroutine that may be used for long

	declined int           // in a row
	pause    time.Duration // before the next campaign
	result   error
}

func (s *session) begin() error {
	if !s.e.busy.CompareAndSwap(false, true) {
		return ErrRunning
	}
	err := s.e.member.campaign(&seeker{ctx: s.ctx, won: func(t *Term, err error) {
		s.spawn(func() bool { return s.next(t, err) })
	}})
	if err != nil {
		s.e.busy.Store(false)
	}
	return err
}

// next serves a term, or takes the end of the campaign. It reports whether more will come.
func (s *session) next(t *Term, err error) bool {
	if t != nil {
		return s.serve(t)
	}
	if s.ctx.Err() == nil {
		s.result = err
	}
	s.e.member.events.flush()
	s.e.busy.Store(false)
	return false
}

// serve runs lead for one term and decides by the lease, not by the kind of error, what follows.
func (s *session) serve(t *Term) bool {
	err := s.call(t)
	lost := t.Err() != nil
	asked := t.softly.Err() != nil
	switch declined := s.declined > 0; {
	case s.ctx.Err() != nil:
		return s.leave(t, s.without(t, err))
	case lost, asked && !declined:
		s.tell(t, err, lost)
		s.declined, s.pause = 0, 0
	case declined: // goes on after the pause
	default:
		return s.leave(t, err)
	}
	if !s.e.member.finish(t, true, s.pause) {
		return s.leave(t, err) // the work itself has resigned
	}
	return true
}

// call runs lead and then, of the user's code as well, Backoff. However they end, the machine learns of it.
func (s *session) call(t *Term) error {
	returned := false
	defer func() {
		if !returned {
			s.e.member.abandon(t)
			s.result = &lostError{ErrAbandoned}
			s.e.busy.Store(false)
		}
	}()
	err := s.lead(t.softly, t)
	s.count(errors.Is(err, ErrDecline))
	returned = true
	return err
}

// count keeps count of terms declined in a row.
func (s *session) count(declined bool) {
	s.pause = 0
	if !declined {
		s.declined = 0
		return
	}
	s.declined++
	s.pause = max(0, s.e.member.backoff()(s.declined))
}

// backoff is the present one; it is the user's code, so it is not called under the lock.
func (m *member) backoff() func(int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cfg.Backoff
}

// leave ends the session with a release.
func (s *session) leave(t *Term, err error) bool {
	_ = t.Resign(context.WithoutCancel(s.ctx)) // bounded by itself; unconfirmed, the lease runs out
	s.result = err
	s.e.member.events.flush()
	s.e.busy.Store(false)
	return false
}

// without drops an error that only says that the context of lead, or the one that Run was given, has ended.
func (s *session) without(t *Term, err error) error {
	for _, end := range []error{context.Canceled, ErrShutdown, context.Cause(t.softly), context.Cause(s.ctx)} {
		if end != nil && errors.Is(err, end) {
			return nil
		}
	}
	return err
}

// tell makes an event of an error that nobody else will hear of.
func (s *session) tell(t *Term, err error, lost bool) {
	if err = s.without(t, err); err != nil && !lost {
		s.e.member.step(func(Reading) { s.e.member.report(EventFailed, err) })
	}
}

// abandon ends the term of work that panicked or called Goexit.
func (m *member) abandon(t *Term) {
	m.step(func(now Reading) {
		if !t.finished {
			m.machine.Abandon(now)
			m.drop()
		}
	})
}
