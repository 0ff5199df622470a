package tenure

import (
	"fmt"
	"maps"
	"time"

	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/internal/protocol"
)

// State is the state of a candidate.
type State string

// The states.
const (
	StateIdle      State = "idle"      // not campaigning
	StateCandidate State = "candidate" // seeking leadership, also during Tuning.Grace
	StateLeader    State = "leader"    // elected, the lease is valid
	StateLeaving   State = "leaving"   // elected, the lease is valid, and asked to finish
	StateEnded     State = "ended"     // the term is over, the work is not known to have stopped
	StateOverdue   State = "overdue"   // the term is over, the work did not stop when asked
	StateReleasing State = "releasing" // the work has stopped, the lease is being released
)

// Status is a snapshot of an election, as this process knows it.
type Status struct {
	// Election is the name of the election.
	Election string
	State    State
	// Known is false until the store was read. If this process did not campaign or observe for a
	// while and begins again, Known is false until the next read. While Known is false, Leader,
	// LeaderSince, LastContact and Record are zero.
	Known bool
	// Leader is the leader as far as this process knows. It may have changed since LastContact. If
	// Known, the zero Leader means that nobody leads: the lease was released, or it expired by this
	// process's clock, as in an outage of the store.
	Leader Leader
	// LeaderSince is when this process first saw that leader's term, by its wall clock. If nobody
	// leads, it is when this process saw that the last term was over. It is zero before the first
	// term.
	LeaderSince time.Time
	// Pushed reports whether the store pushes changes to this process at present. Otherwise this
	// process reads once every Tuning.Poll, or once every Tuning.PollStable while a leader is
	// Confirmed.
	Pushed bool
	// Confirmed reports whether another candidate leads and the last contact showed that it has
	// renewed, and no store call has failed since. A record alone does not show whether the leader
	// that wrote it is still there.
	Confirmed bool
	// Term is the token of this candidate's term while it leads, and 0 while it does not. It is no
	// permission to act: check Term.Err.
	Term uint64
	// Eligible reports whether Election.SetEligible, and a Nominator that is a nomination.Gate, let
	// this candidate lead.
	Eligible bool
	// Priority is Config.Priority of this candidate.
	Priority int
	// Record is the record that was last seen in the store.
	Record admin.Record
	// LastContact is when this process last read the record, wrote it or received it as a push, by
	// its wall clock.
	LastContact time.Time
	// HistoryChanged is when this process last saw a sign that the store's history had changed, by
	// its wall clock: the store was recreated, an older state was put back, the record vanished, or
	// later writes may be missing. Work that the leader recorded in the same store may be lost. It
	// is zero if there was no such sign.
	HistoryChanged time.Time
	// Failures is the number of store calls that failed in a row. Trouble is the error of the last
	// one, or nil if all of them were conflicts.
	Failures int
	Trouble  error
	// Err is set if the store denies reading and has never allowed it. It wraps ErrDenied: an
	// operator must fix it. This process then neither campaigns nor observes until the program
	// calls Run, Watch or the like again. A later denial is a failure like any other.
	Err error
	// WriteErr is set if the store says that the right to write is missing (ErrDenied), or that it
	// cannot hold elections (driver.ErrUnfit). Only a driver.Inspector can say so. The store is
	// asked while this process campaigns and another candidate leads, once in each lease, until a
	// write is allowed.
	WriteErr error
}

// Leaderless reports whether this process knows that nobody leads.
func (s Status) Leaderless() bool { return s.Known && !s.Leader.Exists() }

// Health returns nil if this member is well. Use it for a health check: it does not depend on
// leading. It returns Err or WriteErr if one is set, ErrOverdue if the work of a term did not stop
// within FinishWithin and may still run, and an error if the last three store calls failed. A
// foreign or malformed record is no error here: see Record.Problem.
func (s Status) Health() error {
	switch {
	case s.Err != nil:
		return s.Err
	case s.WriteErr != nil:
		return s.WriteErr
	case s.State == StateOverdue:
		return ErrOverdue
	case s.Failures >= 3 && s.Trouble == nil: // conflicts
		return fmt.Errorf("tenure: %d store operations failed in a row", s.Failures)
	case s.Failures >= 3:
		return fmt.Errorf("tenure: %d store operations failed in a row: %w", s.Failures, s.Trouble)
	}
	return nil
}

// Status returns a snapshot. It reads the clock, so State is that of this moment. It does not call
// the store: the rest is up to date only while this process campaigns, has an open term or
// observes. Watch and Wait observe.
func (e *Election) Status() Status {
	s, _ := e.runner.status()
	return s
}

// status returns a snapshot, and the part of it that is compared to detect a change.
func (m *runner) status() (Status, statusDigest) {
	m.step(nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	contact, known := m.machine.Heard()
	s := Status{
		Election: m.key, State: m.state(), Known: known, Term: m.leadsIn(),
		Failures: m.machine.Failures(), Trouble: m.trouble, Pushed: m.machine.Pushed(), Confirmed: m.machine.Confirmed(), Eligible: m.machine.Eligible(),
		Priority: m.settings.machine.Priority, HistoryChanged: m.machine.HistoryChanged().Time(),
		WriteErr: m.wrap("write", m.rights.missing()),
	}
	if m.refused {
		s.Err = m.machine.Cause()
	}
	if known {
		s.Leader, s.LeaderSince = leaderOf(m.machine.Leader()), m.leaderSince.Time()
		s.LastContact, s.Record = contact.Wall, m.recordInView()
	}
	return s, m.statusDigest()
}

// statusDigest is the part of a status that is compared to detect a change.
type statusDigest struct {
	published uint32 // as in runner
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
	offered   bool
	readOnly  bool
}

func (m *runner) statusDigest() statusDigest {
	_, known := m.machine.Heard()
	c, _ := m.machine.InView()
	return statusDigest{
		m.published, m.state(), known, m.leadsIn(), m.machine.Failures(), m.refused, m.machine.Pushed(), m.machine.Confirmed(),
		m.machine.Eligible(), kindOf(&c), c.Record.Request != nil, c.Record.Request != nil && c.Record.Request.Offer, m.rights.missing() != nil,
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

// leadsIn returns the term in which this candidate leads, or 0.
func (m *runner) leadsIn() uint64 {
	if s := m.state(); s == StateLeader || s == StateLeaving {
		return m.machine.Term()
	}
	return 0
}

func (m *runner) leading() State {
	switch {
	case m.term == nil:
		return StateCandidate // during Tuning.Grace
	case m.machine.Asked() != nil:
		return StateLeaving
	}
	return StateLeader
}

// Leader describes the leader of an election. The zero value means that nobody leads.
type Leader struct {
	// ID is a label; two processes may have the same by mistake. Incarnation tells them apart.
	ID          string
	Incarnation string
	Address     string
	Metadata    map[string]string
	// Term is the fencing token of the leader's term.
	Term uint64
}

// Exists reports whether the election has a leader.
func (l Leader) Exists() bool { return l.ID != "" }

// Equal reports whether both are the same process in the same term, with the same Address and
// Metadata.
func (l Leader) Equal(o Leader) bool {
	return l.Incarnation == o.Incarnation && l.Term == o.Term && l.Address == o.Address && maps.Equal(l.Metadata, o.Metadata)
}

func leaderOf(l protocol.Leader) Leader {
	return Leader{
		ID: l.ID, Incarnation: l.Incarnation, Address: l.Addr, Metadata: maps.Clone(l.Metadata), Term: l.Term,
	}
}

// recordInView returns the record that this member saw last. It runs under the lock.
func (m *runner) recordInView() admin.Record {
	c, since := m.machine.InView()
	r := admin.Record{
		Kind: kindOf(&c), Problem: c.Fault(), LeaderID: c.Record.LeaderID, Term: c.Record.Term, Lease: c.Record.Lease,
		Seen: since, Updated: c.Record.LastUpdated, Priority: c.Record.Priority,
	}
	if q := c.Record.Request; q != nil && q.Term == c.Record.Term {
		r.Request = &admin.Request{To: q.To, By: q.By, Offer: q.Offer}
	}
	return r
}

func kindOf(c *protocol.Cell) admin.Kind {
	switch {
	case c.Kind == protocol.Absent:
		return admin.Absent
	case c.Kind == protocol.Foreign:
		return admin.Foreign
	case c.Kind == protocol.Malformed:
		return admin.Malformed
	case c.Record.Released:
		return admin.Released
	case c.Record.LeaderID == "":
		return admin.Vacant
	}
	return admin.Held
}
