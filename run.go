package tenure

import "context"

// Lead is the work of a leader. Its context is the soft one: when it ends, finish and return.
type Lead func(ctx context.Context, term *Term) error

// Run campaigns and calls lead whenever this process is elected, until ctx ends or lead returns
// without being asked:
//
//	lead returned when             Run
//	not asked: nil or an error     releases the lease and returns it
//	ErrDecline                     releases, backs off, campaigns again; an error that wraps it
//	                               becomes an event
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
	s := &session{handler: lead, calls: make(chan sessionStep, 1)}
	if err := s.begin(ctx, e); err != nil {
		return err
	}
	for {
		if more, err := (<-s.calls)(); !more {
			return err
		}
	}
}
