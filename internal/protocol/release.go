package protocol

import (
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// stepReleasing decides for a member that releases, after its work has stopped. It puts a released
// record where a record names this member, or where its claim with a lost answer may still be
// applied.
func (m *Machine) stepReleasing(now clock.Reading, at *alarm) *Op {
	if !m.view.certain() || m.view.trust != sound && m.mine() {
		// An own record that was put back needs no release: another member may lead by now.
		return m.follow(now, at)
	}
	if term, ok := m.releasable(); ok {
		if !m.viewIsRecent(now) && !m.withinDeadline(now) {
			return m.read(now)
		}
		return m.sendRelease(now, term)
	}
	m.endRelease(now, false)
	return nil
}

// withinDeadline reports whether the cell shows this member's term and its deadline is in the
// future. Until then no other member leads, whatever version the cell has. The deadline of a
// released term proves nothing.
func (m *Machine) withinDeadline(now clock.Reading) bool { return m.mine() && m.remaining(now) > 0 }

// releasable returns the term that may be released. There are three cases: a record that names this
// member; the very absence that ended its term while it was valid; and the version that an own
// claim or release of unknown outcome expects and could still replace.
func (m *Machine) releasable() (term uint64, ok bool) {
	c := &m.view.cell
	if m.mine() {
		return c.Record.Term, true
	}
	if c.Kind == Absent && m.lease.vouched != "" && c.Version == m.lease.vouched {
		return m.lease.term, true
	}
	for i := range m.pending {
		if a := &m.pending[i]; a.expects(c) && a.purpose != create {
			return a.term, true
		}
	}
	return 0, false
}

// sendRelease sends a release. From here on no earlier write of this member counts, whatever its
// outcome (L1).
func (m *Machine) sendRelease(now clock.Reading, term uint64) *Op {
	m.keepReleases(&m.view.cell)
	r := m.record(now, term, max(m.lease.seq, m.view.cell.Record.Seq)+1)
	r.LastUpdated, r.Released, r.Successor = time.Time{}, true, m.successor
	return m.write(now, release, m.view.cell.Version, r)
}

func (m *Machine) keepReleases(present *Cell) {
	kept := m.pending[:0]
	for _, a := range m.pending {
		if a.purpose == release && a.expects(present) {
			kept = append(kept, a)
		}
	}
	m.pending = kept
}

// releasingTimers bounds the release: after it the lease expires by itself.
func (m *Machine) releasingTimers(now clock.Reading, at *alarm) {
	if !at.reached(now, m.releaseBy()) {
		return
	}
	m.op = nil
	m.endRelease(now, false)
}

// releaseBy returns until when a release is tried.
func (m *Machine) releaseBy() due { return byLeader(m.leavingSince, m.cfg.ReleaseWithin()) }

// endRelease ends the release, confirmed in the store or not, and with it the last hold on the
// term.
func (m *Machine) endRelease(now clock.Reading, confirmed bool) {
	if m.lease.announced && (confirmed || errors.Is(m.cause, ErrReleased)) {
		m.tell(Transition{What: Released, Term: m.lease.term, Cause: unless(confirmed)})
	}
	m.leaveTerm(now)
}

// leaveTerm leaves the term behind, to campaign again or to be idle. It forgets writes of unknown
// outcome on purpose: if one turns up, it is a record of this incarnation that belongs to no term,
// and the next claim replaces it.
func (m *Machine) leaveTerm(now clock.Reading) {
	m.pending, m.successor, m.lease.vouched, m.lease.announced = nil, "", "", false
	m.op = nil // a push may have confirmed the release before its own answer did
	m.phase = Idle
	if m.again {
		start := byLeader(m.notBefore, 0)
		m.candidate(now, max(0, start.left(now.Instant)))
		return
	}
	m.tell(Transition{What: Withdrawn, Term: m.lease.term})
}

func unless(confirmed bool) error {
	if confirmed {
		return nil
	}
	return ErrUnconfirmed
}
