package tenure

import "github.com/tenure-go/tenure/clock"

// SetEligible sets whether this candidate is fit to lead, for example by the result of its health
// check. A candidate is eligible until SetEligible(false) is called. Call it at any time. A
// candidate that is not eligible
//
//   - goes on campaigning, but claims nothing. If a hand-over names it as the successor, the others
//     still wait for its head start to end before they claim;
//   - asks no leader to hand over because of its Priority or nomination, until two leases after it
//     is eligible again;
//   - is asked to finish if it leads, with ErrIneligible. The lease is renewed until its work has
//     finished, and then released, as in any hand-over. A claim that was already sent is withdrawn.
//
// If no candidate is eligible, nobody leads. If the Nominator is a driver.Gate, it must also allow
// this candidate to lead.
func (e *Election) SetEligible(eligible bool) {
	m := &e.runner
	m.step(func(now clock.Reading) {
		if n := m.nomination; n != nil && n.gate != nil {
			n.ineligible = !eligible
			eligible = eligible && n.gate.MayLead()
		}
		m.machine.SetEligible(now, eligible)
	})
}
