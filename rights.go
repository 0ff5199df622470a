package tenure

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// rights checks whether this process may write, so that a standby without the right, or over an
// unfit store, is noticed early. The elections of a Group share one.
type rights struct {
	store driver.RightsChecker // nil: the store cannot tell
	// a write was allowed, or the store said so: nothing is left to find out
	granted atomic.Bool
	call    backgroundCall

	mu     sync.Mutex
	asked  bool
	at     clock.Instant // when
	denied error         // ErrDenied or ErrUnfit
}

// checkIfDue asks the store when another candidate leads, and again a lease later while the right
// is missing. It runs under the runner's lock.
func (r *rights) checkIfDue(m *runner, now clock.Reading) {
	if r.store == nil || r.granted.Load() || m.machine.Phase() != protocol.Candidate {
		return
	}
	if m.machine.Leader().ID == "" || !r.due(m, now) {
		return // without a leader, this candidate soon writes, which shows it
	}
	r.call.start(m, m.machine.Attempt(), func(ctx context.Context) {
		err := r.store.CheckRights(ctx, m.key)
		m.step(func(clock.Reading) {
			if r.learn(err) {
				m.report(EventTrouble, m.term, m.wrap("check the right to write", err))
			}
		})
	})
}

func (r *rights) due(m *runner, now clock.Reading) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked && now.LeaderSince(r.at) < m.settings.machine.Lease {
		return false
	}
	r.asked, r.at = true, now.Instant
	return true
}

// learn records an answer. It reports whether the right was not known to be missing before.
func (r *rights) learn(err error) (news bool) {
	if r.granted.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.denied != nil
	switch {
	case err == nil:
		r.denied = nil
		r.granted.Store(true)
	case isFinal(err):
		r.denied = err
		return !known
	}
	return false
}

// isFinal reports whether only an operator can make such a write succeed.
func isFinal(err error) bool {
	return errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrUnfit)
}

// missing returns why this process may not write; nil if it may, or if that is not known.
func (r *rights) missing() error {
	if r.store == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied
}
