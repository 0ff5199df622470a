package tenure

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// rights checks whether this process may write, so that a standby without the right, or over an
// unfit store, is noticed early. The elections of a Group share one.
type rights struct {
	store driver.Inspector // nil: the store has none
	// a write was allowed, or the store said so or cannot tell: nothing is left to find out
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
	case err == nil || errors.Is(err, errors.ErrUnsupported):
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

// ShortLeaseError reports that the store answers, but later than the lease allows. So no candidate
// can be elected or stay elected. Find it with errors.As in the Cause of EventTrouble.
type ShortLeaseError struct {
	// Lease is Config.Lease. Within is the time that it leaves for one request.
	Lease, Within time.Duration
	// Took is how long the store took to answer a request that had more time.
	Took time.Duration
	// Least is the shortest lease, in whole seconds, that leaves two and a half times Took for one
	// request, with the other settings as they are; 0 if not even driver.MaxLease does.
	Least time.Duration
	// Err is the error of the request.
	Err error
}

// Error names the settings to change.
func (e *ShortLeaseError) Error() string {
	text := fmt.Sprintf("no answer within %v, which is all that a lease of %v leaves; answers took %v",
		e.Within.Round(time.Millisecond), e.Lease, e.Took)
	if e.Least > 0 {
		text += fmt.Sprintf("; use a lease of at least %v", e.Least)
	}
	return text
}

// Unwrap returns the error of the request.
func (e *ShortLeaseError) Unwrap() error { return e.Err }

const (
	// The answer to a request that timed out is not awaited. A separate read, with far more time,
	// measures how long the store takes to answer.
	shortestProbe, longestProbe = 5 * time.Second, 30 * time.Second
	// failuresBeforeProbe is how many requests in a row fail before that read.
	failuresBeforeProbe = 2
)

// latencyProbe measures how long a store takes to answer when requests time out. The elections of a
// Group share one.
type latencyProbe struct {
	took   atomic.Int64 // a time.Duration; 0: not known, or answers come in time
	inTime atomic.Bool  // an answer came in time since the last measurement began
	call   backgroundCall
}

// explainTimeout adds a ShortLeaseError to a timeout if the store is known to answer later. It runs
// under the runner's lock.
func (m *runner) explainTimeout(cause error) error {
	if !isTimeout(cause) {
		return cause
	}
	within := m.machine.Attempt()
	if m.machine.Failures() >= failuresBeforeProbe {
		m.latency.start(m, min(max(8*within, shortestProbe), longestProbe))
	}
	took := time.Duration(m.latency.took.Load())
	if took <= within {
		return cause
	}
	cfg := m.settings.given
	cfg.Clock = m.clock
	lease := cfg.WithDefaults().Lease
	return m.wrap("store", &ShortLeaseError{
		Lease: lease, Within: within, Took: took, Least: leastLease(cfg, lease, took), Err: cause,
	})
}

// isTimeout reports whether the store did not answer in time.
func isTimeout(cause error) bool { return errors.Is(cause, driver.ErrNoAnswer) }

// leastLease returns the shortest lease above another, in whole seconds, that leaves two and a half
// times took for one request; 0 if there is none.
func leastLease(cfg Config, above, took time.Duration) time.Duration {
	first := int(above/time.Second) + 1
	n := sort.Search(int(driver.MaxLease/time.Second)-first+1, func(i int) bool {
		cfg.Lease = time.Duration(first+i) * time.Second
		full := cfg.WithDefaults()
		p := full.protocol()
		return p.Attempt() >= took*5/2
	})
	if least := time.Duration(first+n) * time.Second; least <= driver.MaxLease {
		return least
	}
	return 0
}

// start reads once, with more time, unless a probe is under way.
func (l *latencyProbe) start(m *runner, within time.Duration) {
	l.call.start(m, within, func(ctx context.Context) {
		l.inTime.Store(false)
		began := m.clock.Now()
		_, err := m.store.Read(ctx, m.key)
		if err == nil && !l.inTime.Load() {
			l.measured(m.clock.Now().LeaderSince(began.Instant))
		}
	})
}

// measured stores a measurement if it differs by more than a quarter, so that reports repeat the
// same figure.
func (l *latencyProbe) measured(took time.Duration) {
	was := time.Duration(l.took.Load())
	if (took - was).Abs() > was/4 {
		l.took.Store(int64(took.Round(time.Millisecond)))
	}
}

// answered records that an answer came in time, unless the context has ended.
func (l *latencyProbe) answered(ctx context.Context, err error) {
	if err == nil && ctx.Err() == nil && !l.inTime.Load() {
		l.inTime.Store(true)
		l.took.Store(0)
	}
}

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
