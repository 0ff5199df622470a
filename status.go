package tenure

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/protocol"
)

// State is the state of a candidate.
type State string

// The states.
const (
	StateIdle      State = "idle"      // not campaigning
	StateCandidate State = "candidate" // seeking leadership
	StateLeader    State = "leader"    // elected, the lease is valid
	StateLeaving   State = "leaving"   // elected, the lease is valid, and asked to leave
	StateEnded     State = "ended"     // the term is over, the work is not known to have stopped
	StateOverdue   State = "overdue"   // the term is over, the work did not stop when asked
	StateReleasing State = "releasing" // the work has stopped, the lease is being released
)

// Status is a snapshot of an election, as this process knows it.
type Status struct {
	State State
	// Known is false until the store was read for the first time.
	Known bool
	// Leader is the leader as far as this process knows; it may have changed since LastContact. The
	// zero Leader means the same as in Election.Leaders.
	Leader Leader
	// LeaderSince is when this process first saw that leader's term, or saw that the last one was
	// over, by its wall clock. It is zero before the first.
	LeaderSince time.Time
	// Pushed reports whether the store pushes changes to this member at present. Otherwise it reads
	// each Tuning.Poll, or each Tuning.PollStable while a leader is Confirmed.
	Pushed bool
	// Confirmed reports whether LastContact showed that another leader has renewed. A record alone
	// does not show whether the leader that wrote it is still there.
	Confirmed bool
	// Term is the latest term of this candidate, 0 before the first. It may be over long ago: the
	// present leader's is Leader.Term. It is no permission to act: check Term.Err.
	Term uint64
	// Eligible reports whether Election.SetEligible, and a Nominator that is a driver.Gate, let
	// this candidate lead.
	Eligible bool
	// Priority is Config.Priority of this candidate.
	Priority int
	// Record is the record that was last seen in the store.
	Record admin.Record
	// LastContact is when the record was last seen, by this process's wall clock.
	LastContact time.Time
	// Failures is the number of store operations that failed in a row.
	Failures int
	// Err is set if reading was denied before it was ever allowed: an operator must fix it. A later
	// denial is a failure like any other.
	Err error
	// WriteErr is set if writing is denied, on a store that is a driver.RightsChecker. It is
	// checked after the first read of the store, and after each lease while the right is missing.
	WriteErr error
}

// Health returns nil if this member is well. Use it for a health check: it does not depend on
// leading. It returns an error if the store denies reading or writing, if its last three operations
// failed, or if the work of a term has not stopped in time. A foreign or malformed record is no
// error here: see Record.Problem.
func (s Status) Health() error {
	switch {
	case s.Err != nil:
		return s.Err
	case s.WriteErr != nil:
		return s.WriteErr
	case s.State == StateOverdue:
		return ErrOverdue
	case s.Failures >= 3:
		return fmt.Errorf("tenure: %d store operations failed in a row", s.Failures)
	}
	return nil
}

// Status returns a snapshot. It reads the clock, so State is that of this moment. It does not call
// the store: the rest is up to date only while this process campaigns or observes.
func (e *Election) Status() Status {
	s, _ := e.runner.status()
	return s
}

// Changed returns a channel that is closed at the next change of Status. Call it before Status, and
// no change is missed. It is for a program that waits for something else as well. Wait and Leaders
// observe the election while they wait; Changed does not: where nothing campaigns, let Wait run in
// a goroutine with a condition that never holds.
func (e *Election) Changed() <-chan struct{} {
	_, as := e.runner.status()
	return e.runner.changedSince(as)
}

// status returns a snapshot, and the part of it that is compared to detect a change.
func (m *runner) status() (Status, statusDigest) {
	m.step(nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	heard, known := m.machine.Heard()
	s := Status{
		State: m.state(), Known: known, Leader: leaderOf(m.machine.Leader()), Term: m.machine.Term(),
		Failures: m.machine.Failures(), Pushed: m.machine.Pushed(), Confirmed: m.machine.Confirmed(), Eligible: m.machine.Eligible(),
		Priority: m.settings.machine.Priority,
		WriteErr: m.wrap("write", m.rights.missing()),
	}
	if m.refused {
		s.Err = m.machine.Cause()
	}
	if known {
		s.LastContact, s.LeaderSince, s.Record = heard.Wall, m.leaderSince.Time(), m.recordInView()
	}
	return s, m.statusDigest()
}

// statusDigest is the part of a status that is compared to detect a change.
type statusDigest struct {
	published uint32 // how often the leader, or its published data, was new
	state     State
	known     bool
	term      uint64
	failures  int
	refused   bool
	pushed    bool
	confirmed bool
	eligible  bool
	record    admin.Kind
	requested bool
	readOnly  bool
}

func (m *runner) statusDigest() statusDigest {
	_, known := m.machine.Heard()
	c, _ := m.machine.InView()
	return statusDigest{
		m.published, m.state(), known, m.machine.Term(), m.machine.Failures(), m.refused, m.machine.Pushed(), m.machine.Confirmed(),
		m.machine.Eligible(), kindOf(&c), c.Record.Request != nil, m.rights.missing() != nil,
	}
}

// statusWaiters wait for a change of the status.
type statusWaiters struct {
	changed chan struct{}
	seen    statusDigest // seen by them
}

// changedSince returns a channel that is closed when the status differs from the given one, which
// may be now.
func (m *runner) changedSince(as statusDigest) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.statusDigest(); now != as {
		changed := make(chan struct{})
		close(changed)
		return changed
	}
	if m.statusWaiters == nil {
		m.statusWaiters = &statusWaiters{changed: make(chan struct{}), seen: as}
	}
	return m.statusWaiters.changed
}

// wakeStatusWaiters wakes the waiters for a change, if there is one.
func (m *runner) wakeStatusWaiters() {
	if o := m.statusWaiters; o != nil && o.seen != m.statusDigest() {
		m.statusWaiters = nil
		close(o.changed)
	}
}

func (m *runner) state() State {
	switch m.machine.Phase() {
	case protocol.Candidate:
		return StateCandidate
	case protocol.Leading:
		return m.leading()
	case protocol.Ended:
		if m.machine.Overdue() {
			return StateOverdue
		}
		return StateEnded
	case protocol.Releasing:
		return StateReleasing
	}
	return StateIdle
}

func (m *runner) leading() State {
	switch {
	case m.term == nil:
		return StateCandidate // within the grace
	case m.machine.Asked() != nil:
		return StateLeaving
	}
	return StateLeader
}

// Wait observes until the condition holds for the status, and returns that status. It returns ctx's
// cause if that ends first, or an error that wraps ErrDenied if reading was denied before it
// was ever allowed.
func (e *Election) Wait(ctx context.Context, until func(Status) bool) (Status, error) {
	defer e.runner.observe()()
	for {
		s, as := e.runner.status()
		if until(s) {
			return s, nil
		}
		if s.Err != nil {
			return s, s.Err
		}
		select {
		case <-e.runner.changedSince(as):
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
	}
}

// Observe observes the election until stop is called, also while this process does not campaign.
// Status is then up to date, and OnEvent receives changes of the leader, alarms and trouble. It
// needs no goroutine, so it suits an observer of many elections; for one, Leaders and Wait are
// simpler. Stop may be called more than once.
func (e *Election) Observe() (stop func()) { return sync.OnceFunc(e.runner.observe()) }

// observe keeps this process observing the election until the returned function is called.
func (m *runner) observe() (stop func()) {
	m.step(func(clock.Reading) {
		m.observers++
		m.refused = false // a new observer asks again, also for those refused before
		m.machine.Observe(true)
	})
	return func() {
		m.step(func(clock.Reading) {
			m.observers--
			m.machine.Observe(m.observers > 0)
		})
	}
}
