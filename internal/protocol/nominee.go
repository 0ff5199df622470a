package protocol

import (
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// A nominator outside the election may name one member, the nominee, which has precedence: others
// claim later, or never (NomineeOnly), and a leader that loses its nomination is asked to leave. A
// nomination never shortens the lease of a leader (L13).

// standing says whether this member is the nominee.
type standing uint8

const (
	outsider standing = iota // another member is nominated, or none
	nominee
	declined // it is the nominee, but left by itself or on request, so others claim first
)

// Nominate sets whether this member is the nominee.
func (m *Machine) Nominate(now clock.Reading, nominated bool) {
	m.expire(now)
	if nominated == m.isNominee() {
		return
	}
	m.nomination = outsider
	if nominated {
		m.nomination = nominee
	}
	m.health.well = false // the old leader gets time to leave without a request
}

func (m *Machine) isNominee() bool { return m.nomination != outsider }

// declineNomination notes that the nominee leaves, unless it leaves because it is ineligible or no
// longer named.
func (m *Machine) declineNomination() {
	why := m.lease.asked
	if m.nomination == nominee && !errors.Is(why, ErrNominationLost) && !errors.Is(why, ErrIneligible) {
		m.nomination = declined
	}
}

// delayForNominee returns how much longer than the nominee this member waits before it claims;
// false means that it never claims. A series of nominees does not make the wait longer: it counts
// from renewedAt.
func (m *Machine) delayForNominee() (time.Duration, bool) {
	switch {
	case m.ineligible:
		return 0, false
	case m.isNominee() || !m.cfg.HasNominator:
		return 0, true
	case m.cfg.NomineeOnly:
		return 0, false
	}
	return m.cfg.Precedence, true
}

// delayAfterDeclining is how much later a nominee claims once it has left by itself or on request.
// It then claims after the members that wait for a nominee, even if their clocks are slower.
// Otherwise its precedence would undo its own decision (H1).
func (m *Machine) delayAfterDeclining() time.Duration {
	if m.nomination != declined || m.cfg.NomineeOnly {
		return 0
	}
	return m.cfg.Precedence + m.cfg.Precedence/8
}

// claimsAtOnce reports whether this member may claim, and need not wait for a nominee.
func (m *Machine) claimsAtOnce() bool {
	wait, ok := m.delayForNominee()
	return ok && wait == 0
}

// outranks reports whether this member has precedence over the holder of the record in view.
func (m *Machine) outranks() bool {
	return !m.ineligible && m.view.cell.Record.Priority < m.priority()
}

// priority returns the priority in this member's records. A nominee has a higher one: otherwise two
// nominees would request hand-overs from each other without end.
func (m *Machine) priority() int {
	if m.cfg.HasNominator && m.isNominee() {
		return 1
	}
	return m.cfg.Priority
}
