package protocol

import (
	"time"

	"github.com/tenure-go/tenure/clock"
)

// Wait is why a candidate does not claim, where no change of the leader shows it. It is for people:
// no decision depends on it.
type Wait uint8

// The waits.
const (
	NoWait          Wait = iota
	WaitVacant           // the record names no candidate
	WaitMalformed        // the record is malformed
	WaitForeign          // other bytes are in the cell
	WaitUnproven         // the record is released, and may not be the latest one
	WaitSameID           // the record names this member's ID, and was not seen to be renewed
	WaitNamesake         // another member has this ID, and renews
	WaitOtherLease       // another member renews, with another lease than this one has
	WaitIneligible       // no member led for a lease, and this one is not eligible
	WaitNomineeOnly      // no member led for a lease, and only the nominee may lead
)

// Wait returns why this member does not claim. It returns false while that is not certain.
func (m *Machine) Wait(now clock.Reading) (why Wait, certain bool) {
	if m.phase != Candidate {
		return NoWait, true
	}
	if !m.view.certain() {
		return NoWait, false
	}
	c := &m.view.cell
	switch {
	case c.Kind == Foreign:
		return WaitForeign, true
	case m.barred() != NoWait && m.StandsFor(now) <= 0:
		return m.barred(), true
	case m.view.held():
		return m.waitForHolder(), true
	case c.Kind == Malformed:
		return WaitMalformed, true
	case c.Kind == Absent || c.draft():
		return NoWait, true
	case m.view.trust != sound:
		return WaitUnproven, true
	case c.vacant():
		return WaitVacant, true
	}
	return NoWait, true
}

// waitForHolder returns why this member waits for the lease of the record in view. If the record
// has another ID and the same lease, the change of leader shows it.
func (m *Machine) waitForHolder() Wait {
	r, renews := &m.view.cell.Record, m.view.change == renewed
	switch {
	case m.mine():
		return NoWait
	case r.LeaderID == m.cfg.ID && renews:
		return WaitNamesake
	case r.LeaderID == m.cfg.ID:
		return WaitSameID
	case renews && r.Lease.Milliseconds() != m.cfg.Lease.Milliseconds():
		return WaitOtherLease
	}
	return NoWait
}

// barred returns why this member may claim nothing, whatever is in the cell.
func (m *Machine) barred() Wait {
	switch _, ok := m.delayForNominee(); {
	case ok:
		return NoWait
	case m.ineligible:
		return WaitIneligible
	}
	return WaitNomineeOnly
}

// StandsFor returns how long the record in view still counts as a leader's, or is waited out, if it
// is not renewed.
func (m *Machine) StandsFor(now clock.Reading) time.Duration {
	stands := m.standsUntil()
	return stands.left(now.Instant)
}
