package protocol

import (
	"errors"
	"maps"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// What names a change that the caller is notified of.
type What uint8

// The changes, with the fields that are set in brackets.
const (
	Candidacy What = iota + 1 // this member campaigns
	Elected                   // it leads [Term]
	Leaving                   // it was asked to leave [Term, Cause]
	Lost                      // its term ended before a release [Term, Cause]
	Released                  // its release is over [Term, Cause: nil, or ErrUnconfirmed]
	Withdrawn                 // it is idle again [Term: its last one]
	NewLeader                 // Leader changed; it may be this member, or none [Term, Leader]
	Overdue                   // its work did not stop in time; Lost follows [Term, Cause]
	Trouble                   // an operation failed or was refused [Cause]
	Refused                   // denied before any read was answered, and idle again [Cause]
	Asking                    // the caller should ask the leader to hand over [Term, Accepts]
	Alarm                     // the store or the cell is in an unexpected state [Cause]
)

// Transition is one change.
type Transition struct {
	What   What
	Term   uint64
	Cause  error
	Leader Leader
	// OtherTerm reports that the term of a NewLeader changed, not only its address or metadata.
	OtherTerm bool
	// Accepts reports that an Asking accepts an offer (H3), and asks for nothing if that is gone.
	Accepts bool
}

// Leader is the leader of the election, as far as this member knows. Without an ID there is none.
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

// noteLeader reports a change of leader. The mere passing of time may cause one.
func (m *Machine) noteLeader(now clock.Reading, wake *wakeup) {
	if !m.view.known() {
		return // the leader that was reported last remains until the cell is seen
	}
	var l Leader
	if left := m.leaderRemaining(now); left > 0 {
		r := &m.view.cell.Record
		l = Leader{ID: r.LeaderID, Addr: r.LeaderAddr, Term: r.Term, Incarnation: r.Incarnation, Metadata: r.Metadata}
		if m.phase != Leading {
			wake.in(left)
		}
	}
	if l.ID == "" && m.rereading() && m.leader.Incarnation == m.view.cell.Record.Incarnation {
		return // the read in flight will show whether that leader still leads
	}
	if l.ID == "" && !m.Active() && m.leader.Incarnation != m.incarnation {
		return // nothing is read any more, so the age of the view proves nothing
	}
	if !l.same(&m.leader) {
		otherTerm := l.Term != m.leader.Term || l.Incarnation != m.leader.Incarnation
		m.leader = l
		m.tell(Transition{What: NewLeader, Term: l.Term, Leader: l, OtherTerm: otherTerm})
	}
}

// rereading reports whether another's record is being read again, where nothing is pushed.
func (m *Machine) rereading() bool {
	return !m.watching && m.op != nil && !m.op.Write && m.view.held() && !m.mine()
}

// leaderRemaining returns how long the record in view still counts as a leader's. A record of
// this member counts only while its term is open.
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

// Incarnation returns the name that no other member has.
func (m *Machine) Incarnation() string { return m.incarnation }

// Phase returns the state of this member.
func (m *Machine) Phase() Phase { return m.phase }

// Current reports whether the machine still waits for this operation.
func (m *Machine) Current(id uint64) bool { return m.op != nil && m.op.ID == id }

// Leader returns the leader, as of the last call of Next.
func (m *Machine) Leader() Leader { return m.leader }

// Failures returns the number of operations that failed in a row.
func (m *Machine) Failures() int { return int(m.failures) }

// Heard returns when the cell, or a rumor of it, was last seen; false if the cell never was.
func (m *Machine) Heard() (clock.Reading, bool) {
	at, wall := m.view.lastSign()
	return clock.Reading{Instant: at, Wall: wall.Time()}, m.view.known()
}

// InView returns the cell as it was last seen, and the wall-clock time from which its lease counts
// (renewedAt). It is the time of the last sign (lastSign), minus the time from renewedAt to that
// sign. The results count only if Heard returns true.
func (m *Machine) InView() (Cell, time.Time) {
	at, wall := m.view.lastSign()
	return m.view.cell, wall.Time().Add(-at.FollowerSince(m.view.renewedAt()))
}

// ShownAt returns a time at or after which the store held the cell in view: when the read of it was
// sent, or when the push of it came. It returns false if no such time is known.
func (m *Machine) ShownAt() (clock.Instant, bool) {
	return m.view.asOf, m.view.source != nowhere && m.view.source != latePush
}

// Asked returns why the open term was asked to end, or nil.
func (m *Machine) Asked() error {
	if m.phase != Leading {
		return nil
	}
	return m.lease.asked
}

// Term returns the latest term of this member, open or not; 0 before the first.
func (m *Machine) Term() uint64 { return m.lease.term }

// Moves counts the events, other than the passing of time, that may have changed Remaining.
func (m *Machine) Moves() uint32 { return m.lease.moves }

// LastConfirmed returns when the write that Remaining counts from was sent: the last confirmed one
// of the latest term, or a void one (voidPending).
func (m *Machine) LastConfirmed() clock.Instant { return m.lease.held.sent }

// Holds reports whether a term is open and within its deadline. Unlike Remaining, it changes
// nothing.
func (m *Machine) Holds(now clock.Reading) bool {
	return m.phase == Leading && m.remaining(now) > 0
}

// Remaining returns how long this member may rely on the term from now, or 0 and why the term is
// over. Once it is 0, it stays 0 for this term (L6).
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

// LeaseLeft returns how much longer the lease of a term is valid by this member's clock, less the
// margin, or 0 if this member has left that term. Unlike Remaining, it counts on while the work of
// a term that has ended still runs, until the lease is released. It changes nothing.
func (m *Machine) LeaseLeft(now clock.Reading, term uint64) time.Duration {
	if m.lease.term != term || m.phase == Idle || m.phase == Candidate {
		return 0
	}
	return max(m.remaining(now), 0)
}

// HistoryChanged returns when this member last saw a sign that the store's history had changed: a
// recreated store, an older or unproven state, or a record that vanished. Zero: never.
func (m *Machine) HistoryChanged() Moment { return m.historyChanged }

// LongestLease returns the longest lease that this member knows of.
func (m *Machine) LongestLease() time.Duration { return max(m.cfg.Lease, m.view.longLease) }

// Cause returns why the last term ended, or why this member was refused, whichever was later.
func (m *Machine) Cause() error { return m.cause }

// Overdue reports whether the last term ended because its work did not stop when asked, and that
// work may still run.
func (m *Machine) Overdue() bool { return m.phase == Ended && errors.Is(m.cause, ErrOverdue) }
