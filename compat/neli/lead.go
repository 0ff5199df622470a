package neli

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/tenure-go/tenure"
)

// lead is the work of a leader: to have the program told. It returns when that is done, so nothing
// is released before.
func (s *session) lead(ctx context.Context, t *tenure.Term) error {
	n, h := s.n, &holding{term: t, over: make(chan struct{})}
	s.term = t
	n.change(func() { n.held = h })
	<-ctx.Done()
	defer context.AfterFunc(t.Context(), n.wake)()
	if n.forgo(h) {
		return nil
	}
	select {
	case <-h.over:
	case <-s.quiet():
		runtime.Goexit() // it cannot be told; so nothing is released, and the lease runs out
	}
	return nil
}

// quiet is closed when no Pulse is under way.
func (s *session) quiet() <-chan struct{} {
	c := make(chan struct{})
	context.AfterFunc(s.ctx, func() {
		if errors.Is(context.Cause(s.ctx), errSilent) {
			close(c)
		}
	})
	return c
}

// untilTold returns when the program knows of the end of a term.
func (n *elector) untilTold(t *tenure.Term) {
	n.mu.Lock()
	h := n.held
	n.mu.Unlock()
	if h != nil && h.term == t {
		<-h.over
	}
}

// forgo drops a term that the program does not know, and otherwise wakes the goroutine that reports
// it.
func (n *elector) forgo(h *holding) bool {
	gone := false
	n.change(func() {
		if gone = h.stage == won; gone {
			n.held = nil
		}
	})
	return gone
}

// settle waits until the program knows that it was fenced, and so has stopped, and then resigns the
// term.
func (s *session) settle() error {
	s.n.untilTold(s.term)
	ctx, cancel := context.WithTimeout(context.Background(), settleWithin)
	defer cancel()
	_ = s.term.Resign(ctx) // an unreleased lease expires
	return nil
}

const settleWithin = 2 * time.Second
