package protocol

import (
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// A nominator outside the election may name one member that has precedence. That orders the claims,
// for a bounded time, and makes a leader leave in good order. A nomination never shortens the lease
// of a leader (L13).

// nomination is this member's state towards its nominator.
type nomination uint8

const (
	outsider nomination = iota // another member is nominated, or none
	nominee
	declined // it is the nominee, but left by itself or on request; so others go first
)

// Nominate says whether this member is the nominee from now on.
func (m *Machine) Nominate(now clock.Reading, nominated bool) {
	m.expire(now)
	if nominated == m.isNominee() {
		return
	}
	m.nomination = outsider
	if nominated {
		m.nomination = nominee
	}
	m.health.well = false // the leader before gets the time to leave unasked
}

func (m *Machine) isNominee() bool { return m.nomination != outsider }

// declineNomination notes that this member leaves as the nominee, by itself or on request.
func (m *Machine) declineNomination() {
	why := m.lease.asked
	if m.nomination == nominee && !errors.Is(why, ErrNominationLost) && !errors.Is(why, ErrIneligible) {
		m.nomination = declined
	}
}

// delayForNominee returns how much longer than the nominee this member waits before it claims;
// false means that it never claims. It counts from the same moment as the wait that it adds to, so
// that a series of nominees does not make it longer.
func (m *Machine) delayForNominee() (time.Duration, bool) {
	switch {
	case m.barred:
		return 0, false
	case m.isNominee() || !m.cfg.Nominated:
		return 0, true
	case m.cfg.NomineeOnly:
		return 0, false
	}
	return m.cfg.Precedence, true
}

// delayAfterDeclining is how much later than all others a nominee claims that has just declined, or
// was asked to hand over. It is later than the members that wait for a nominee, on clocks that
// differ. Otherwise its precedence would undo its own decision (H1).
func (m *Machine) delayAfterDeclining() time.Duration {
	if m.nomination != declined || m.cfg.NomineeOnly {
		return 0
	}
	return m.cfg.Precedence + m.cfg.Precedence/8
}

// claimsAtOnce reports whether no precedence of others delays the claims of this member.
func (m *Machine) claimsAtOnce() bool {
	wait, ok := m.delayForNominee()
	return ok && wait == 0
}

// outranks reports whether this member has precedence over the holder of the record in view.
func (m *Machine) outranks() bool {
	return !m.barred && m.view.cell.Record.Priority < m.priority()
}

// priority returns the priority in this member's records. A nominee has a higher one: otherwise two
// nominees would request hand-overs from each other without end.
func (m *Machine) priority() int {
	if m.cfg.Nominated && m.isNominee() {
		return 1
	}
	return m.cfg.Priority
}
