package tenure

// SetEligible says whether this candidate is fit to lead, such as what its health check finds. It is, until this says
// otherwise, and it may be said at any time. One that is not
//   - claims nothing, while it goes on campaigning, and is not waited for: who names it as the successor loses the head start;
//   - asks no leader to hand over because of its Priority or nomination, nor does it until two leases after it is eligible again;
//   - is asked to finish if it leads, with ErrIneligible; the lease is renewed until its work has, and then released, as in
//     any hand-over. A claim that is on its way is taken back.
//
// If no candidate is eligible nobody leads. A Nominator that is a driver.Gate says so too: then
// both must agree.
func (e *Election) SetEligible(eligible bool) {
	m := &e.member
	m.step(func(now Reading) {
		if n := m.heeds; n != nil && n.gate != nil {
			n.unfit = !eligible
			eligible = eligible && n.gate.MayLead()
		}
		m.machine.Stand(now, eligible)
	})
}
