package protocol

import (
	"errors"
	"maps"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// What names a change that the owner of a machine is told of.
type What uint8

// The changes.
const (
	Candidacy What = iota + 1 // this member seeks leadership
	Elected                   // it leads, Term
	Leaving                   // it was asked to leave, Cause
	Lost                      // its term ended, Cause
	Released                  // its release is in the store
	Withdrawn                 // it is idle again
	NewLeader                 // Leader is another, or nobody
	Overdue                   // its work did not stop in time; comes with Lost
	Trouble                   // an operation failed or was refused, Cause
	Refused                   // the same, for want of rights before the first good read: it is idle again
	Asking                    // it shall ask the leader of Term to hand over to itself
	Alarm                     // the cell holds what it should not, Cause
)

// Transition is one change.
type Transition struct {
	What   What
	Term   uint64
	Cause  error
	Leader Leader
	// Anew says of a NewLeader that its term is another, or that nobody's is.
	Anew bool
}

// Leader is who holds the election, as far as this member knows. Without an ID nobody does.
type Leader struct {
	ID          string
	Addr        string
	Term        uint64
	Incarnation string
	Metadata    map[string]string
}

func (l *Leader) same(o *Leader) bool {
	return l.Term == o.Term && l.Incarnation == o.Incarnation && l.Addr == o.Addr && maps.Equal(l.Metadata, o.Metadata)
}

func (m *Machine) tell(t Transition) { m.transitions = append(m.transitions, t) }

// noteLeader tells of a change of leader, which the mere passing of time may be.
func (m *Machine) noteLeader(now clock.Reading, at *alarm) {
	if !m.view.known() {
		return // the last one that was known stands until the first look
	}
	var l Leader
	if left := m.leaderRemaining(now); left > 0 {
		r := &m.view.cell.Record
		l = Leader{ID: r.LeaderID, Addr: r.LeaderAddr, Term: r.Term, Incarnation: r.Incarnation, Metadata: r.Metadata}
		if m.phase != Leading {
			at.in(left)
		}
	}
	if l.ID == "" && m.rereading() && m.leader.Incarnation == m.view.cell.Record.Incarnation {
		return // it has just been asked whether that leader still leads
	}
	if l.ID == "" && !m.Active() && m.leader.Incarnation != m.incarnation {
		return // nobody looks, so what is known grows old, and that tells nothing
	}
	if !l.same(&m.leader) {
		anew := l.Term != m.leader.Term || l.Incarnation != m.leader.Incarnation
		m.leader = l
		m.tell(Transition{What: NewLeader, Term: l.Term, Leader: l, Anew: anew})
	}
}

// rereading reports whether another's record is read again just now, where nothing is pushed.
func (m *Machine) rereading() bool {
	return !m.watching && m.op != nil && !m.op.Write && m.view.held() && !m.mine()
}

// leaderRemaining is how long the record in view still stands for a leader. An own record does so
// only while the term is open.
func (m *Machine) leaderRemaining(now clock.Reading) time.Duration {
	switch {
	case !m.view.held():
		return 0
	case m.mine():
		if m.phase == Leading {
			return m.remaining(now)
		}
		return 0
	}
	stands := m.standsUntil()
	return stands.left(now.Instant)
}

// Incarnation is the name of this member that no other has.
func (m *Machine) Incarnation() string { return m.incarnation }

// Phase returns where this member stands.
func (m *Machine) Phase() Phase { return m.phase }

// Current reports whether the operation is still waited for.
func (m *Machine) Current(id uint64) bool { return m.op != nil && m.op.ID == id }

// Leader returns who holds the election, as of the last call of Next.
func (m *Machine) Leader() Leader { return m.leader }

// Failures is the number of operations that failed in a row.
func (m *Machine) Failures() int { return int(m.failures) }

// Heard is when the cell was last seen; false if never.
func (m *Machine) Heard() (clock.Reading, bool) {
	return clock.Reading{Instant: m.view.heard, Wall: m.view.heardAt.Time()}, m.view.known()
}

// InView is the cell as it was last seen, and when its stamp first was, by the wall clock as it was last seen; of use if Heard says
// that it was.
func (m *Machine) InView() (Cell, time.Time) {
	return m.view.cell, m.view.heardAt.Time().Add(-m.view.heard.FollowerSince(m.view.since))
}

// Asked is why the open term was asked to end, or nil.
func (m *Machine) Asked() error {
	if m.phase != Leading {
		return nil
	}
	return m.lease.asked
}

// Term is the latest term of this member, open or not; 0 before the first.
func (m *Machine) Term() uint64 { return m.lease.term }

// Moves counts how often Remaining changed, or may have, otherwise than by time passing.
func (m *Machine) Moves() uint64 { return m.lease.moves }

// Holds reports whether a term is open and within its deadline, and changes nothing: for those who check from outside.
func (m *Machine) Holds(now clock.Reading) bool {
	return m.phase == Leading && m.remaining(now) > 0
}

// Remaining is how long the announced term may be relied on from now, or 0 and why it is over. After it was once 0 it
// stays so for this term (L6).
func (m *Machine) Remaining(now clock.Reading, term uint64) (time.Duration, error) {
	m.expire(now)
	if m.Holds(now) && m.lease.term == term {
		return m.remaining(now), nil
	}
	if m.lease.term != term || m.cause == nil {
		return 0, ErrReleased
	}
	return 0, m.cause
}

// Cause is why the last term ended, or why this member was refused, whichever was later.
func (m *Machine) Cause() error { return m.cause }

// Overdue reports whether the last term ended because its work did not stop when asked.
func (m *Machine) Overdue() bool { return m.phase == Ended && errors.Is(m.cause, ErrOverdue) }
