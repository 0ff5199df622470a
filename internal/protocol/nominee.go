package protocol

import (
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// Somebody outside of the election may name one who has precedence. That orders who claims first, for a bounded time, and
// has a leader leave in good order; the lease of a leader lasts as long as ever, whoever is named (L13).

// nomination is what this member is to those who nominate.
type nomination uint8

const (
	outsider nomination = iota // somebody else is nominated, or nobody
	nominee
	declined // it is the nominee, and left of its own will or was asked to; so others go first
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

// declineNomination notes that this member leaves as the nominee, of its own will or because it was
// asked to.
func (m *Machine) declineNomination() {
	why := m.lease.asked
	if m.nomination == nominee && !errors.Is(why, ErrNominationLost) && !errors.Is(why, ErrIneligible) {
		m.nomination = declined
	}
}

// delayForNominee is how much longer than the nominee this member waits before it claims; false
// means for ever. It counts from the same moment as the wait that it adds to, so that nominees who
// come and go do not make it longer.
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

// delayAfterDeclining is how much later than anybody else a nominee claims that has just declined,
// or was asked to hand over: later than those who wait for a nominee, by clocks that differ.
// Otherwise its precedence would undo what it has said (H1).
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

// outranks reports whether this member is to lead rather than the holder of the record in view.
func (m *Machine) outranks() bool {
	return !m.barred && m.view.cell.Record.Priority < m.priority()
}

// priority is what a record of this member says of it. A nominee says that it is one: of two, which asked each other, leaders
// would change for ever.
func (m *Machine) priority() int {
	if m.cfg.Nominated && m.isNominee() {
		return 1
	}
	return m.cfg.Priority
}
