package protocol

import "github.com/tenure-go/tenure/clock"

// A member can be alive and unfit to lead: its disk is full, it has not caught up, or its zone is
// being drained. It then follows like any other member and claims nothing. The record does not show
// that the member is unfit, and no lease is shortened.

// SetEligible sets whether this member is eligible.
func (m *Machine) SetEligible(now clock.Reading, eligible bool) {
	m.expire(now)
	if m.ineligible == eligible {
		m.ineligible = !eligible
		m.health.well = false // a member that has just become eligible has not been well for long
	}
}

// Eligible returns the last value of SetEligible; true before the first call.
func (m *Machine) Eligible() bool { return !m.ineligible }

// stepDownIfUnwanted asks this leader to leave if it should no longer lead. Before the announcement
// there is no work to finish, so the leader withdraws and campaigns again.
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

// unwanted returns why this leader should leave, or nil, and notes whether it is the nominee. A
// leader that was not the nominee in this term may stay, unless NomineeOnly is set.
func (m *Machine) unwanted() error {
	m.lease.nominated = m.lease.nominated || m.isNominee()
	switch {
	case m.ineligible:
		return ErrIneligible
	case m.cfg.HasNominator && !m.isNominee() && (m.cfg.NomineeOnly || m.lease.nominated):
		return ErrNominationLost
	}
	return nil
}
