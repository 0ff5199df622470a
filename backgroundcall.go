package tenure

import (
	"context"
	"sync"
	"time"
)

// backgroundCall makes store calls that the state machine did not request, at most one at a time.
type backgroundCall struct {
	mu     sync.Mutex
	owner  *runner // nil: none is under way
	cancel context.CancelFunc
}

// start makes a call for a runner, unless one is under way.
func (s *backgroundCall) start(m *runner, within time.Duration, call func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	s.owner, s.cancel = m, cancel
	m.calls.start(false, func() {
		defer s.end()
		call(ctx)
	})
}

func (s *backgroundCall) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel()
	s.owner, s.cancel = nil, nil
}

// giveUp cancels the call of a runner that no longer campaigns or observes.
func (s *backgroundCall) giveUp(m *runner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner == m {
		s.cancel()
	}
}
