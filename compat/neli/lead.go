package neli

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/tenure-go/tenure"
)

// lead is a leader's work: it makes the barrier receive the events of the term. It returns when the
// barrier has handled the last one, so the lease is not released before.
func (s *session) lead(ctx context.Context, t *tenure.Term) error {
	n, h := s.n, &holding{term: t, over: make(chan struct{})}
	s.term = t
	n.change(func() { n.held = h })
	<-ctx.Done()
	defer context.AfterFunc(t.Context(), n.wake)()
	if n.dropUnreported(h) {
		return nil
	}
	select {
	case <-h.over:
	case <-s.unpulsed():
		runtime.Goexit() // the barrier cannot be called, so the lease runs out
	}
	return nil
}

// unpulsed returns a channel that is closed if the session ends because Pulse was not called.
func (s *session) unpulsed() <-chan struct{} {
	c := make(chan struct{})
	context.AfterFunc(s.ctx, func() {
		if errors.Is(context.Cause(s.ctx), errSilent) {
			close(c)
		}
	})
	return c
}

// awaitEnd waits until the barrier has handled the end of a term.
func (n *elector) awaitEnd(t *tenure.Term) {
	n.mu.Lock()
	h := n.held
	n.mu.Unlock()
	if h != nil && h.term == t {
		<-h.over
	}
}

// dropUnreported drops a term whose LeaderAcquired was not yet reported, and returns whether it
// did. Otherwise it wakes the calls of Pulse, which report the end of the term.
func (n *elector) dropUnreported(h *holding) bool {
	gone := false
	n.change(func() {
		if gone = h.stage == won; gone {
			n.held = nil
		}
	})
	return gone
}

// resign waits until the barrier has handled LeaderFenced, so the program has stopped, and then
// resigns the term.
func (s *session) resign() error {
	s.n.awaitEnd(s.term)
	ctx, cancel := context.WithTimeout(context.Background(), resignWithin)
	defer cancel()
	_ = s.term.Resign(ctx) // an unreleased lease expires
	return nil
}

const resignWithin = 2 * time.Second
