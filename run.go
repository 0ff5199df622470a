package tenure

import "context"

// Lead is the work of a leader. Its context is the soft one: when it ends, begin nothing more,
// finish and return. A job that may still finish after that gets the hard context:
//
//	for ctx.Err() == nil {
//		job(term.Context())
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
// reading and has never allowed it; ErrRunning; or ErrTermOpen.
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
