package protocol

import "github.com/tenure-go/tenure/clock"

// A member may be there and not fit to lead: its disk is full, it has not caught up, its zone is being drained. It then
// follows like any other, and claims nothing. Nothing of this is in the record, and no lease is cut by it.

// SetEligible says whether this member is eligible from now on.
func (m *Machine) SetEligible(now clock.Reading, eligible bool) {
	m.expire(now)
	if m.barred == eligible {
		m.barred = !eligible
		m.health.well = false // who has just become eligible has not been well for long
	}
}

// Eligible reports what SetEligible said last; true before the first.
func (m *Machine) Eligible() bool { return !m.barred }

// stepDownIfUnwanted asks a leader to leave that is not to lead any more. Before the announcement
// there is no work to finish, so the leader withdraws, and seeks on.
func (m *Machine) stepDownIfUnwanted(now clock.Reading) {
	why := m.unwanted()
	switch {
	case why == nil:
	case m.lease.announced:
		m.Ask(now, why)
	default:
		m.withdraw(now, true)
	}
}

// unwanted is why this leader is to leave, or nil. One that was elected because no nominee came may stay.
func (m *Machine) unwanted() error {
	m.lease.nominated = m.lease.nominated || m.isNominee()
	switch {
	case m.barred:
		return ErrIneligible
	case m.cfg.Nominated && !m.isNominee() && (m.cfg.NomineeOnly || m.lease.nominated):
		return ErrNominationLost
	}
	return nil
}
