package tenure

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
)

// Member returns what this process says of its part in the election at this moment. It does not
// call the store.
func (e *Election) Member() admin.Member { return e.runner.member() }

func (m *runner) member() admin.Member {
	s, _ := m.status()
	m.mu.Lock()
	defer m.mu.Unlock()
	all := admin.Member{
		Election: m.key, ID: m.id, Incarnation: m.machine.Incarnation(), Address: m.settings.given.Address,
		State: string(s.State), Eligible: s.Eligible, Priority: s.Priority, LeaseMillis: m.settings.machine.Lease.Milliseconds(), LastContact: s.LastContact,
	}
	if err := s.Health(); err != nil {
		all.Problem = err.Error()
	}
	return all
}

// announcement returns a member as JSON of at most driver.MaxPresence bytes, without what does
// not fit, and nil if too little fits.
func announcement(m admin.Member) []byte {
	for {
		text, err := json.Marshal(m)
		over := len(text) - driver.MaxPresence
		switch {
		case err != nil:
			return nil
		case over <= 0:
			return text
		case m.Problem != "":
			m.Problem = m.Problem[:max(0, len(m.Problem)-max(over, 32))]
		case m.Address != "":
			m.Address = ""
		default:
			return nil
		}
	}
}

// presence announces a candidate while it campaigns or leads, so that observers can ask who takes
// part. Nothing depends on it: a failure is logged once, and the election goes on.
type presence struct {
	active bool
	// busy: a goroutine calls the store, one call after the other.
	busy bool
	end  context.CancelFunc // ends a call that announces; nil: none is under way
	stop func()             // ends the announcement; nil: there is none
}

// maxAnnouncing is how many elections of a Group call the store at once to announce candidates.
// They have calls of their own, so that no renewal waits behind them.
const maxAnnouncing = 4

// presenceLog logs the first failure.
type presenceLog struct{ once sync.Once }

// setActive begins or ends the announcement. It runs under the runner's lock, so the store is
// called elsewhere.
func (p *presence) setActive(m *runner, on bool) {
	if on == p.active {
		return
	}
	p.active = on
	if !on && p.end != nil {
		p.end()
	}
	if !p.busy {
		p.busy = true
		m.announcing.start(false, func() { p.follow(m) })
	}
}

// follow calls the store until the candidate is announced if it is active, and not if it is not.
func (p *presence) follow(m *runner) {
	for call := p.next(m); call != nil; call = p.next(m) {
		call()
	}
}

// next returns the next call, or nil.
func (p *presence) next(m *runner) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	stop := p.stop
	switch {
	case p.active && stop == nil:
		ctx, cancel := context.WithTimeout(context.Background(), m.settings.machine.Attempt())
		p.end = cancel
		return func() { p.announce(ctx, m) }
	case !p.active && stop != nil:
		p.stop = nil
		return stop
	}
	p.busy = false
	return nil
}

// announce is not tried again before the next campaign: in most cases an operator must act first.
func (p *presence) announce(ctx context.Context, m *runner) {
	stop, err := m.announcer.Announce(ctx, m.key, func() []byte { return announcement(m.member()) })
	ended := context.Cause(ctx) == context.Canceled //nolint:errorlint // the campaign is over, and the next one may have begun
	if err != nil && !ended {
		stop = func() {}
		m.silence.failed(m, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p.end()
	p.end, p.stop = nil, stop
}

func (l *presenceLog) failed(m *runner, err error) {
	if m.log == nil || errors.Is(err, errors.ErrUnsupported) {
		return
	}
	l.once.Do(func() {
		m.log.Info("tenure: observers cannot see this candidate, only the leader: it takes part all the same",
			"election", m.key, "id", m.id, "cause", err)
	})
}
