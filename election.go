package tenure

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// Election is this process's part in one election: a candidate, an observer, or both. Its methods
// may be called concurrently. If a process has several candidates in one election, make an Election
// for each. Each Election is one member of the election. Two Elections of one name never lead at
// the same time, not even in one process and with the same ID. It needs no Close: it uses the store
// only while it campaigns, observes or has an open term, and while HandOver runs.
type Election struct{ runner runner }

var errNoStore = errors.New("tenure: the store is nil")

// New returns an election under the given name, which is the key in the store. It starts nothing
// and does not call the store. Its error lists all problems of the name and the config, each as a
// *ConfigError. If store is nil, the error reports only that.
func New(store driver.Store, name string, cfg Config) (*Election, error) {
	if store == nil {
		return nil, errNoStore
	}
	full := cfg.withDefaults()
	if err := full.validate(store, name, &cfg); err != nil {
		return nil, err
	}
	f := newShared(store, &cfg, &full)
	return newElection(f, name, newSettings(f, &cfg, &full), cfg.Nominator), nil
}

func newElection(f *shared, name string, s *settings, nominator driver.Nominator) *Election {
	e := &Election{runner: runner{shared: f, key: name, settings: s}}
	m := &e.runner
	if nominator != nil {
		m.nomination = newNomination(nominator)
	}
	m.machine = *protocol.New(&s.machine, incarnation(f.store))
	if f.announcer != nil {
		m.presence = &presence{}
	}
	if f.metrics != nil {
		m.meter = newMeter(e, f.metrics)
	}
	return e
}

// Name returns the name of the election.
func (e *Election) Name() string { return e.runner.key }

// ID returns the ID of this candidate.
func (e *Election) ID() string { return e.runner.id }

// Campaign seeks leadership and returns the term when this process is elected. The context bounds
// only the wait: the term goes on until it is lost or resigned. When its work has stopped, call
// Term.Resign, even if the term is lost.
//
// It returns ctx's cause if ctx ends first; an error that wraps ErrDenied if the store denies
// reading and has never allowed it; ErrRunning; or ErrTermOpen. After the end of ctx, Campaign may
// need up to a third of the lease, at most 2 s, to withdraw a claim whose outcome is unknown.
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	if !e.runner.busy.CompareAndSwap(false, true) {
		return nil, ErrRunning
	}
	defer e.runner.busy.Store(false)
	type result struct {
		term *Term
		err  error
	}
	won := make(chan result, 1)
	s := &seeker{ctx: ctx, once: true, onResult: func(t *Term, err error) { won <- result{t, err} }}
	if err := e.runner.campaign(s); err != nil {
		return nil, err
	}
	r := <-won
	return r.term, r.err
}

// campaign makes the machine campaign. If a denial has stopped the observers and they have not
// noticed it yet, they observe again.
func (m *runner) campaign(s *seeker) error {
	open := false
	m.step(func(now clock.Reading) {
		if open = m.machine.Phase() != protocol.Idle; open {
			return
		}
		m.seeker, m.refused, s.runner = s, false, m
		m.cancels.add(s)
		m.machine.Observe(m.observers > 0)
		m.machine.Campaign(now, 0)
		if s.ctx.Err() != nil { // later, if the lease is free, a claim may have been sent
			m.withdraw(now)
		}
	})
	if open {
		return ErrTermOpen
	}
	return nil
}

// leave handles the end of a campaign's context: a candidate gives up, a leader is asked to finish.
// It may be called late, when another campaign has begun.
func (m *runner) leave(s *seeker) {
	m.step(func(now clock.Reading) {
		if m.seeker == s {
			m.withdraw(now)
		}
	})
}

// withdraw runs under the lock.
func (m *runner) withdraw(now clock.Reading) {
	m.machine.Withdraw(now)
	m.machine.Ask(now, ErrShutdown)
}

// stop does the same as leave before the context has ended. A leader, or a member whose work has
// not stopped yet, does not campaign again.
func (m *runner) stop() {
	m.step(func(now clock.Reading) {
		if s := m.seeker; s != nil && !s.once {
			s.stopped = true
			m.withdraw(now)
		}
	})
}

// finish reports to the machine that the work of a term has stopped. A context that has ended in
// the meantime starts no new campaign. The result is true for the first report; later ones have no
// effect.
func (m *runner) finish(t *Term, again bool, delay time.Duration) (first bool) {
	m.step(func(now clock.Reading) {
		if first = !t.finished; !first {
			return
		}
		t.finished = true
		if !again {
			m.dropSeeker()
		}
		_, lost := m.machine.Remaining(now, t.token)
		m.machine.Finish(now, "", again && !m.seeker.stopped && m.seeker.ctx.Err() == nil, delay)
		t.end(&lostError{cmp.Or(lost, ErrReleased)})
	})
	return first
}
