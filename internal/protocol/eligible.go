package protocol

import "github.com/tenure-go/tenure/internal/clock"

// A member may be there and not fit to lead: its disk is full, it has not caught up, its zone is being drained. It then
// follows like any other, and claims nothing. Nothing of this is in the record, and no lease is cut by it.

// Stand says whether this member is eligible from now on.
func (m *Machine) Stand(now clock.Reading, eligible bool) {
	m.expire(now)
	if m.barred == eligible {
		m.barred = !eligible
		m.health.well = false // who has just become eligible has not been well for long
	}
}

// giveBack releases what this member has won, or by a claim of unknown fate may have won or may yet (L16), and it seeks on.
func (m *Machine) giveBack(now clock.Reading) {
	m.phase, m.again, m.successor, m.closing = Releasing, true, "", now.Instant
	m.notBefore, m.hold = now.Instant, 0
}

// Eligible reports what Stand said last; true before the first.
func (m *Machine) Eligible() bool { return !m.barred }

// abide has a leader leave that is not to lead any more. Before the announcement there is no work to finish, so it gives
// back what it won, and seeks on.
func (m *Machine) abide(now clock.Reading) {
	why := m.unwanted()
	switch {
	case why == nil:
	case m.lease.announced:
		m.Ask(now, why)
	default:
		m.giveBack(now)
	}
}

// unwanted is why this leader is to leave, or nil. One that was elected because no nominee came may stay.
func (m *Machine) unwanted() error {
	m.lease.nominated = m.lease.nominated || m.nominee
	switch {
	case m.barred:
		return ErrIneligible
	case m.cfg.Nominated && !m.nominee && (m.cfg.NomineeOnly || m.lease.nominated):
		return ErrNominationLost
	}
	return nil
}
