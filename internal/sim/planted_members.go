package main

// plantedMembers leave out rules on which member has precedence: by priority, nomination and
// eligibility.
var plantedMembers = []bug{
	// Priority.
	{
		Name: "ask-unripe", Rule: "H2", Left: "a candidate of a higher priority asks for a hand-over as soon as it starts",
		Edit:  []edit{{"protocol/priority.go", "	wellLeases    = 2 ", "	wellLeases    = 0 "}},
		Shows: "asks for a hand-over when it is",
	},
	{
		Name: "ask-again", Rule: "H2", Left: "a candidate of a higher priority asks for a hand-over in each lease",
		Edit:  []edit{{"protocol/priority.go", "	requestLeases = 10 ", "	requestLeases = 1 "}},
		Shows: "asks for a hand-over again",
	},
	{
		Name: "never-ask", Rule: "H2", Left: "a candidate of a higher priority never asks for a hand-over",
		Edit:  []edit{{"protocol/priority.go", "	m.tell(Transition{What: Asking, Term: r.Term, Accepts: accepts})\n", ""}},
		Shows: nobody,
	},

	// Offers.
	{
		Name: "offer-obeyed", Rule: "H3", Left: "a leader obeys an offer before the candidate has accepted it",
		Edit:  []edit{{"protocol/leader.go", "(leaving || !q.Offer)", "(leaving || true || !q.Offer)"}},
		Shows: "for an offer that nobody has accepted",
	},
	{
		Name: "offer-overwritten", Rule: "H3", Left: "the next renewal of the leader removes an offer",
		Edit:  []edit{{"protocol/leader.go", "	r.Request = m.offered(now)\n", ""}},
		Shows: "was to take over",
	},
	{
		Name: "offer-kept", Rule: "H3", Left: "a leader keeps an offer without end",
		Edit:  []edit{{"protocol/offer.go", "over.left(now.Instant) <= 0 {", "over.left(now.Instant) <= 0 && m.phase != Leading {"}},
		Shows: "still offers the lead",
	},
	{
		Name: "offer-ignored", Rule: "H3", Left: "a candidate accepts no offer",
		Edit:  []edit{{"protocol/offer.go", "	return mayClaim && q != nil", "	return mayClaim && false && q != nil"}},
		Shows: "was to take over",
	},
	{
		Name: "offer-accepted-unfit", Rule: "H3, L13", Left: "a candidate accepts an offer though it is not eligible, or may not lead by its nomination",
		Edit:  []edit{{"protocol/offer.go", "	return mayClaim && q != nil", "	return (mayClaim || true) && q != nil"}},
		Shows: "accepts an offer, and is not",
	},
	{
		Name: "offer-to-another", Rule: "H3", Left: "a candidate accepts an offer to another",
		Edit:  []edit{{"protocol/offer.go", " && q.To == m.cfg.ID\n", " && q.To != \"\"\n"}},
		Shows: "accepts an offer to",
	},
	{
		Name: "offer-unheard", Rule: "H3, L13", Left: "a push with an offer that anybody can have sent causes no read",
		Edit: []edit{{"protocol/rumor.go", "	case m.phase == Candidate && m.isOffered", "	case m.phase == Ended && m.isOffered"}},
		Test: "TestTimelines/H3-offer",
		Note: "It costs the hand-over where followers read seldom: the simulation finds that in one of 200 seeds.",
	},
	{
		Name: "offer-names-nobody", Rule: "H3, H1", Left: "a leader that is leaving ignores the name in an offer",
		Edit:  []edit{{"protocol/leader.go", "(leaving || !q.Offer)", "!q.Offer"}, {"protocol/leader.go", "	leaving := m.lease.asked != nil // so the offer can only name a successor\n", ""}},
		Shows: "was to take over|and was told of",
	},

	// Nomination.
	{
		Name: "nominee-at-once", Rule: "L13", Left: "a nominee does not wait for the lease of the leader before",
		Edit:  []edit{{"protocol/candidate.go", "		var more time.Duration\n", "		var more time.Duration\n		if m.isNominee() {\n			delay /= 2\n		}\n"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "no-precedence", Rule: "L13", Left: "a member that is not the nominee claims as soon as the nominee",
		Edit:  []edit{{"protocol/nominee.go", "	return m.cfg.Precedence, true", "	return 0, true"}},
		Shows: "who is not the nominee, has term",
	},
	{
		Name: "waits-for-a-nominee", Rule: "L13", Left: "a member that is not the nominee waits for one without end",
		Edit:  []edit{{"protocol/nominee.go", "	return m.cfg.Precedence, true", "	return 0, false"}},
		Shows: nobody,
	},
	{
		Name: "nominee-only-ignored", Rule: "L13", Left: "a member with NomineeOnly claims after a while like others",
		Edit:  []edit{{"protocol/nominee.go", "	case m.cfg.NomineeOnly:\n		return 0, false", "	case m.cfg.NomineeOnly:\n		return m.cfg.Precedence, true"}},
		Shows: "and is not the nominee",
	},
	{
		Name: "nomination-outlived", Rule: "L13", Left: "a leader does not leave when its nomination ends",
		Edit:  []edit{{"protocol/eligible.go", "		return ErrNominationLost\n", "		return nil\n"}},
		Shows: "after its nomination ended",
	},
	{
		Name: "nominee-never-asks", Rule: "L13, H2", Left: "a nominee does not ask a leader that is not a nominee to hand over",
		Edit:  []edit{{"protocol/nominee.go", "Priority < m.priority()", "Priority < m.cfg.Priority"}},
		Shows: nobody,
	},
	{
		Name: "nominees-take-turns", Rule: "L13, H2", Left: "the record of a nominee does not show that it is one, and two nominees ask each other without end",
		Edit:  []edit{{"protocol/candidate.go", "Priority: m.priority(), Metadata", "Priority: m.cfg.Priority, Metadata"}},
		Shows: "changes of leader in the calm|writes in .* of calm",
	},
	{
		Name: "outsider-keeps", Rule: "L13, L4", Left: "a member that lost a term, and is not the nominee, keeps its record instead of releasing it",
		Edit: []edit{{"protocol/machine.go", " && m.claimsAtOnce() {", " && (m.claimsAtOnce() || true) {"}},
		Test: "TestTimelines/L13-nominee",
		Note: "It costs a wait for the nominee, no more than other faults of these runs.",
	},

	// Eligibility.
	{
		Name: "ineligible-claims", Rule: "L13", Left: "a member that is not eligible claims like others",
		Edit:  []edit{{"protocol/nominee.go", "	case m.ineligible:\n		return 0, false\n", ""}},
		Shows: "sends a .*, and is not eligible",
	},
	{
		Name: "ineligible-stays", Rule: "L13", Left: "a leader that is no longer eligible is not asked to finish",
		Edit:  []edit{{"protocol/eligible.go", "		return ErrIneligible\n", "		return nil\n"}},
		Shows: "is not asked to finish",
	},
	{
		Name: "ineligible-ends", Rule: "L13, L9", Left: "a leader that is no longer eligible loses its term at once, instead of being asked to finish",
		Edit:  []edit{{"protocol/eligible.go", "		m.Ask(now, why)\n", "		m.end(why)\n"}},
		Shows: "to nobody: no longer eligible",
	},
	{
		Name: "ineligible-not-renewed", Rule: "L13", Left: "the lease of a leader that is no longer eligible is not renewed while its work finishes",
		Edit:  []edit{{"protocol/leader.go", "	if len(m.pending) == 0 && !m.lease.hasten", "	if m.ineligible {\n		return nil\n	}\n	if len(m.pending) == 0 && !m.lease.hasten"}},
		Shows: "has not asked the store",
	},
	{
		Name: "ineligible-keeps-claim", Rule: "L13", Left: "a member that ceases to be eligible while its claim is in flight still leads, and is then asked to finish",
		Edit:  []edit{{"protocol/eligible.go", "	case m.lease.announced:\n", "	case m.lease.announced || m.ineligible:\n"}},
		Shows: "elected .*, and is not eligible",
	},
	{
		Name: "ineligible-leaves-claim", Rule: "L13, L16", Left: "a member that ceases to be eligible ignores its claim with an unknown outcome",
		Edit: []edit{{"protocol/candidate.go", "	if m.ineligible && m.claimPending() {", "	if m.ineligible && m.claimPending() && m.phase != Candidate {"}},
		Test: "TestTimelines/eligible",
		Note: "If the claim is applied after all, it is released as soon as it is seen, which costs a moment.",
	},
	{
		Name: "ineligible-keeps-record", Rule: "L13, L4", Left: "a member that is not eligible lets a record that names it expire",
		Edit: []edit{{"protocol/candidate.go", "	if ok && !m.prepares() && !m.mine() {", "	if ok && !m.prepares() && (!m.mine() || m.ineligible) {"}},
		Test: "TestTimelines/eligible",
		Note: "It costs a lease, seldom.",
	},
	{
		Name: "ineligible-asks", Rule: "L13, H2", Left: "a member of a higher priority asks for a hand-over though it is not eligible",
		Edit:  []edit{{"protocol/nominee.go", "	return !m.ineligible && m.view", "	return m.view"}},
		Shows: "asks for a hand-over .* after it became eligible",
	},
	{
		Name: "ask-when-just-eligible", Rule: "L13, H2", Left: "a member of a higher priority asks for a hand-over as soon as it is eligible",
		Edit: []edit{{"protocol/eligible.go",
			"		m.health.well = false // a member",
			"		// a member"}},
		Shows: "asks for a hand-over .* after it became eligible",
	},
	{
		Name: "ineligible-stands-back", Rule: "L13", Left: "a nominee that was not eligible waits, like one that declined, when it is eligible again",
		Edit: []edit{{"protocol/nominee.go", " && !errors.Is(why, ErrIneligible) {", " {"}},
		Test: "TestTimelines/eligible",
		Note: "It costs the precedence, seldom.",
	},
	{
		Name: "leaving-names-nobody", Rule: "H1", Left: "a leader that leaves for another reason than a hand-over does not note the requested successor",
		Edit:  []edit{{"protocol/machine.go", "	if m.phase == Leading {\n		m.successor = to", "	if m.phase == Leading && errors.Is(m.lease.asked, ErrHandOver) {\n		m.successor = to"}},
		Shows: "was to take over|and was told of",
	},
	{
		Name: "leaving-hears-nothing", Rule: "H1, H2", Left: "a leader that leaves for another reason ignores a request in the store",
		Edit:  []edit{{"protocol/leader.go", "m.lease.requestTaken || errors.Is(m.lease.asked, ErrHandOver)", "m.lease.requestTaken || m.lease.asked != nil && !errors.Is(m.lease.asked, ErrExpired)"}},
		Shows: "was to take over|and was told of",
	},
	{
		Name: "request-obeyed-again", Rule: "H2", Left: "a request counts as long as it is in the record, even after a later one",
		Edit: []edit{{"protocol/leader.go", "	m.lease.requestTaken = true\n", ""}},
		Test: "TestTimelines/eligible",
		Note: "The release names the first requested successor, not the last. The simulation accepts both.",
	},
}
