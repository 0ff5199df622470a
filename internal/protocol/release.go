package protocol

import (
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// stepReleasing decides for a member that releases, after its work has stopped. It puts a released
// record in the cell if releasable allows that, and else ends the release.
func (m *Machine) stepReleasing(now clock.Reading, wake *wakeup) *Op {
	if !m.view.certain() || m.view.trust != sound && m.mine() {
		// This member's record is not released if it is not sound: another member may lead by now.
		return m.follow(now, wake)
	}
	if term, ok := m.releasable(now); ok {
		if !m.viewIsRecent(now) && !m.withinDeadline(now) {
			return m.read(now)
		}
		return m.sendRelease(now, term)
	}
	m.endRelease(now, false)
	return nil
}

// withinDeadline reports whether the cell names this member as the holder, and the deadline of its
// term is in the future. Until then no other member leads, even if the version was seen long ago.
// If the cell shows a release, the deadline proves nothing.
func (m *Machine) withinDeadline(now clock.Reading) bool { return m.mine() && m.remaining(now) > 0 }

// releasable returns the term that may be released. There are three cases: a record that names this
// member; until the deadline, the absence that this member read while its term was valid, and that
// ended the term; and the state that a pending write expects and could still replace.
func (m *Machine) releasable(now clock.Reading) (term uint64, ok bool) {
	c := &m.view.cell
	if m.mine() {
		return c.Record.Term, true
	}
	if c.Kind == Absent && m.lease.absence != "" && c.Version == m.lease.absence && m.remaining(now) > 0 {
		return m.lease.term, true
	}
	for i := range m.pending {
		if a := &m.pending[i]; a.expects(c) {
			return a.term, true
		}
	}
	return 0, false
}

func (m *Machine) sendRelease(now clock.Reading, term uint64) *Op {
	r := m.record(now, term, max(m.lease.seq, m.view.cell.Record.Seq)+1)
	r.LastUpdated, r.Released, r.Successor = time.Time{}, true, m.successor
	return m.write(now, release, m.view.cell.Version, r)
}

// releasingTimers ends a release whose time is over. Then the lease expires by itself.
func (m *Machine) releasingTimers(now clock.Reading, wake *wakeup) {
	if !wake.reached(now, m.releaseBy()) {
		return
	}
	m.endRelease(now, false)
}

// releaseBy returns when the time for the release is over.
func (m *Machine) releaseBy() due { return byLeader(m.leavingSince, m.cfg.ReleaseWithin()) }

// endRelease ends the release, confirmed or not, and leaves the term.
func (m *Machine) endRelease(now clock.Reading, confirmed bool) {
	if m.lease.announced && (confirmed || errors.Is(m.cause, ErrReleased)) {
		m.tell(Transition{What: Released, Term: m.lease.term, Cause: releaseCause(confirmed)})
	}
	m.leaveTerm(now)
}

// leaveTerm leaves the term behind, to campaign again or to be Idle. It forgets pending writes on
// purpose: if one is applied later, it is a record of this incarnation without an open term, which
// the next claim replaces.
func (m *Machine) leaveTerm(now clock.Reading) {
	m.pending, m.successor, m.lease.absence, m.lease.announced = nil, "", "", false
	m.op = nil // a push may have confirmed the release before its own answer did
	if m.view.certain() {
		m.endFailures() // those of the writes that are forgotten
	}
	m.phase = Idle
	if m.again {
		start := byLeader(m.notBefore, 0)
		m.candidate(now, start.left(now.Instant))
		return
	}
	m.tell(Transition{What: Withdrawn, Term: m.lease.term})
}

// releaseCause returns the cause of a Released transition: ErrUnconfirmed unless confirmed.
func releaseCause(confirmed bool) error {
	if confirmed {
		return nil
	}
	return ErrUnconfirmed
}
