package main

// plantedStates leave out rules on states of the store that are damaged, put back or of an earlier
// life.
var plantedStates = []bug{
	// Reset.
	{
		Name: "reset-valid", Rule: "L15", Left: "an operator's reset replaces a valid record, too",
		Edit:  []edit{{"protocol/reset.go", "	if c.Kind != Foreign && c.Kind != Malformed {", "	if c.Kind != Foreign && c.Kind != Malformed && c.Kind != Valid {"}},
		Shows: "a valid record",
	},
	{
		Name: "reset-released", Rule: "L15, L11", Left: "a reset puts a released record there, which no member waits out",
		Edit:  []edit{{"protocol/reset.go", "Seq: 0, Lease", "Seq: 0, Released: true, Lease"}},
		Shows: twoLead,
	},
	{
		Name: "reset-waited-out", Rule: "L15, L11", Left: "the record of a reset is waited out, though a repeated write may put it there again",
		Edit:  []edit{{"protocol/reset.go", "Seq: 0, Lease", "Seq: 1, Lease"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "reset-without-lease", Rule: "L15", Left: "the record of a reset shows no lease",
		Edit:  []edit{{"protocol/reset.go", "Lease: lease, Nonce", "Lease: 0 * lease, Nonce"}},
		Shows: "a reset shows a lease",
	},
	{
		Name: "reset-own-lease", Rule: "L15, L2", Left: "a reset shows the operator's lease, though a longer one can be read in the damaged record",
		Edit:  []edit{{"protocol/reset.go", "	if !c.illegible() {", "	if !c.illegible() && c.Kind == Foreign {"}},
		Shows: "a reset shows a lease",
	},
	{
		Name: "reset-longest", Rule: "L15", Left: "after a reset of a record without a legible lease, members wait for the maximum lease",
		Edit:  []edit{{"protocol/reset.go", "	if !c.illegible() {", "	if c.Kind == Foreign || c.Kind == Malformed {"}},
		Shows: nobody,
	},
	{
		Name: "illegible-remembered", Rule: "L15, L11", Left: "a member that has seen a record without a legible lease remembers the maximum lease as seen",
		Edit:  []edit{{"protocol/view.go", "	if !c.illegible() {\n		v.", "	if c.Kind != Malformed || c.illegible() {\n		v."}},
		Shows: nobody,
	},
	{
		Name: "last-term-succeeded", Rule: "L10, L15", Left: "a claim follows the last credible term with one that others find malformed",
		Edit: []edit{{"protocol/credible.go", "	if c.credible(term + 1) {", "	if c.credible(term) {"}},
		Test: "TestTimelines/L15-terms",
		Note: "Terms of the simulation are far below the limit.",
	},
	{
		Name: "floor-believed", Rule: "L10", Left: "a floor that is not credible counts, so no term is left",
		Edit:  []edit{{"protocol/credible.go", "	if c.Floor < max(vouched, c.Record.Term)+leeway {", "	if c.Floor < max(vouched, c.Record.Term)+leeway || c.Floor > 0 {"}},
		Shows: nobody,
	},
	{
		Name: "floor-forgotten", Rule: "L10", Left: "the term of the record does not take the place of a floor that is not credible, so no member claims",
		Edit:  []edit{{"protocol/credible.go", "= c.Floor, c.Record.Term, true", "= c.Floor, 0, true"}},
		Shows: nobody,
	},
	{
		Name: "floor-not-waited-out", Rule: "L10, L3a", Left: "a release with a floor that is not credible is believed at once",
		Edit: []edit{{"protocol/credible.go", "= c.Floor, c.Record.Term, true", "= c.Floor, c.Record.Term, c.Unproven"}},
		Test: "TestTimelines/L10-floor",
		Note: "No state is lost in the seeds that have such floors.",
	},
	{
		Name: "reset-forgets-floor", Rule: "L15, L10", Left: "a reset restarts the terms, though the store vouches for a higher one",
		Edit:  []edit{{"protocol/reset.go", "m.highestKnownTerm(&c), Seq: 0", "max(c.Record.Term, m.view.highestSeenTerm()), Seq: 0"}},
		Shows: "terms went back|claimed after term|a reset goes back",
	},
	{
		Name: "reset-by-floor-alone", Rule: "L15, L10", Left: "a reset goes by the floor of the store, not by the damaged record, or the terms seen before",
		Edit:  []edit{{"protocol/reset.go", "m.highestKnownTerm(&c), Seq: 0", "max(c.Floor, 0*m.view.highestSeenTerm()), Seq: 0"}},
		Shows: "a reset goes back",
	},
	{
		Name: "old-state-believed", Rule: "L10, L2", Left: "a record that was put back is believed: a release by all, a held one by its former leader",
		Edit:  []edit{{"protocol/candidate.go", "	case m.view.trust != sound:", "	case m.view.trust != sound && !m.view.known():"}},
		Shows: twoLead,
	},
	{
		Name: "old-state-shorter", Rule: "L10, L2", Left: "a record that was put back is waited out by its own lease, though a longer one was seen",
		Edit: []edit{{"protocol/view.go", "		lease = max(lease, v.longLease)", "		lease = max(lease, v.cell.Record.Lease)"}},
		Test: "TestTimelines/L10-older",
		Note: "Where leases differ, the simulation forgives two leaders after an older state was put back: a member that has just started knows of no longer lease.",
	},
	{
		Name: "old-record-released", Rule: "L10, L9", Left: "a former leader of a record that was put back releases it",
		Edit: []edit{{"protocol/release.go", " || m.view.trust != sound && m.mine() {", " {"}},
		Test: "TestTimelines/L10-older",
		Note: "Within one second a release must go unanswered, another member must be elected, and the old record must be put back.",
	},
	{
		Name: "own-goes-on", Rule: "L10, L4", Left: "a member believes its own old record when a newer one of that term follows, and claims at once",
		Edit: []edit{{"protocol/view.go", " && (by == ownWrite || c.Record.Incarnation != self):", ":"}},
		Test: "TestTimelines/L10-older",
		Note: "A store must be put back while it also shows a still older state.",
	},
	{
		Name: "old-state-forever", Rule: "L10", Left: "a holder that goes on from a record that was put back is never believed",
		Edit: []edit{{"protocol/view.go", "		return sound\n	case v.otherEra", "		return v.trust\n	case v.otherEra"}},
		Test: "TestTimelines/L10-older",
		Note: "It costs time, seldom more than other faults.",
	},

	// L3a: versions that recur.
	{
		Name: "predecessor-at-once", Rule: "L2, L10", Left: "a record without a term, as older systems write, is claimed after a renewal interval",
		Edit:  []edit{{"protocol/candidate.go", "	case m.view.trust != sound:", "	case c.predecessor():\n		return m.cfg.Renew, true\n	case m.view.trust != sound:"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "peer-lease-believed", Rule: "L3a, L13", Left: "a lease that a peer pushes counts, though the store does not show it",
		Edit:  []edit{{"protocol/outcome.go", " && r.Lease == shown.Lease && r.Drift", " && r.Drift"}},
		Shows: "believes a peer",
	},
	{
		Name: "peer-term-believed", Rule: "L3a, L10, L13", Left: "a term that a peer pushes counts, though the store does not show it",
		Edit:  []edit{{"protocol/outcome.go", " && c.sameTerm(&m.view.cell) && r.Lease", " && r.Incarnation == shown.Incarnation && r.Lease"}},
		Shows: "believes a peer",
	},
	{
		Name: "peer-bound-believed", Rule: "L3, L13", Left: "a drift bound that a peer pushes counts, though the store does not show it",
		Edit: []edit{{"protocol/outcome.go", " && r.Lease == shown.Lease && r.Drift == shown.Drift", " && r.Lease == shown.Lease"}},
		Test: "TestTimelines/L13-pushes",
		Note: "Peers of the simulation push the bound that the store shows.",
	},
	{
		Name: "claim-on-old-sight", Rule: "L3a", Left: "a state from before this process was stopped is claimed without a read",
		Edit:  []edit{{"protocol/candidate.go", "	if m.view.source == ownWrite || !m.viewIsRecent(now) {", "	if m.view.source == ownWrite {"}},
		Shows: "claimed after term" + "|" + twoLead + "|" + tooSoon,
	},
	{
		Name: "release-on-old-sight", Rule: "L3a", Left: "a record from before this process was stopped is released without a read",
		Edit:  []edit{{"protocol/release.go", "		if !m.viewIsRecent(now) && !m.withinDeadline(now) {", "		if m.lease.term > 0 && !m.viewIsRecent(now) && false {"}},
		Shows: "released over" + "|" + twoLead,
	},
	{
		Name: "overdue-write-sent", Rule: "L3a", Left: "a write is sent though the process was stopped since the machine decided on it",
		Edit: []edit{{"../runner.go", "	if err == nil && op.Overdue(m.clock.Now()) {", "	if err != nil && op.Overdue(m.clock.Now()) {"}},
		Test: "TestWriteIsNotSentAfterAStop", In: ".",
		Note: "The simulation has no runner: it sends each write at the time of the decision.",
	},
	{
		Name: "overdue-answer-counts", Rule: "L3a", Left: "an answer counts, however late it comes",
		Edit: []edit{{"protocol/outcome.go", "	if !m.Current(id) || m.giveUp(now) {", "	if !m.Current(id) {"}},
		Test: "TestTimelines/L03a-recurring",
		Note: "The age of a view counts from the send of the read, so the member reads again before it claims.",
	},
	{
		Name: "push-after-stop", Rule: "L3a, L13", Left: "a push counts as new, though it may have waited while this process was stopped",
		Edit:  []edit{{"protocol/outcome.go", "	if m.wokeLately(now) {", "	if !m.view.known() {"}},
		Shows: "claimed after term" + "|" + twoLead + "|" + tooSoon,
	}, {
		Name: "push-after-read", Rule: "L3a, L13", Left: "after the answer to a read a push counts as new, though it may have waited while this process was stopped",
		Edit: []edit{{"protocol/outcome.go", "	m.observe(now, c, sight{answer, op.sent.Instant})\n", "	m.observe(now, c, sight{answer, op.sent.Instant})\n	m.view.woken = false\n"}},
		Test: "TestTimelines/L03a-recurring",
		Note: "An answer must overtake a push, in a store that was recreated without another era.",
	},

	{
		Name: "pushed-version-known", Rule: "L3a, L13", Left: "a push with the version in view changes nothing, though another write has that version now",
		Edit: []edit{{"protocol/outcome.go", "	if m.view.otherEra(&c) || known && !c.sameTerm(&m.view.cell) || known && c.Record.Seq > m.view.cell.Record.Seq {", "	if m.view.otherEra(&c) {"}},
		Test: "TestTimelines/L03a-recurring",
		Note: "The store must lose writes just when the next leader's claim gets the version that the old leader has in view: 1 of 5,000 seeds.",
	},
	{
		Name: "pushed-era-believed", Rule: "L3a, L13", Left: "a push of a recreated store counts without a read",
		Edit: []edit{{"protocol/outcome.go", "	if m.view.otherEra(&c) || known &&", "	if known &&"}},
		Test: "TestTimelines/L03a-recurring",
		Note: "The state is not sound (L3a) and is waited out, read or pushed. A leader reads after any push of another's record.",
	},
	{
		Name: "leader-reads-when-pushes-begin", Rule: "L13, H2", Left: "a leader whose watch begins reads before it renews, and a stale read ends its term",
		Edit: []edit{{"protocol/machine.go", "	case m.phase == Leading && m.view.certain():", "	case false:"}},
		Test: "TestTimelines/H2-request",
		Note: "It costs a term and nothing else.",
	},
	{
		Name: "peer-knows-no-ceiling", Rule: "L10, L13", Left: "a peer's push decides which terms are credible",
		Edit: []edit{{"protocol/outcome.go", "		c.Ceiling = max(c.Ceiling, m.view.cell.ceiling())", "		_ = c.Ceiling"}},
		Test: "TestTimelines/L15-terms",
		Note: "A server's clock must have been wrong by 34 years, and a backup must have been put back.",
	},
	{
		Name: "former-writes-kept", Rule: "L3a", Left: "pending writes are remembered, though the store was recreated",
		Edit: []edit{
			{"protocol/outcome.go", "		m.voidPending(now)\n", ""},
			{"protocol/lease.go", "return a.prev == c.Version && a.over == c.Record.Nonce", "return a.prev == c.Version"},
		},
		Shows: "released over|" + twoLead,
	},
	{
		Name: "new-store-trusted", Rule: "L3a", Left: "a released or own record in a store that was recreated is not waited out",
		Edit:  []edit{{"protocol/view.go", "v.otherEra(c) || v.trust == unproven:", "v.trust == unproven:"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "marked-state-keeps-timer", Rule: "L3a", Left: "the timer runs on when the store marks the state in view as unproven",
		Edit: []edit{{"protocol/view.go",
			"		v.since, v.rumor = v.firstHeard(now, &c), nil\n",
			"		if !v.known() || v.otherEra(&c) || c.stamp() != v.cell.stamp() {\n			v.since, v.rumor = v.firstHeard(now, &c), nil\n		}\n"}},
		Test: "TestTimelines/L03a-recurring",
		Note: "The value that is put back must be one that a member saw less than a lease ago: 3 of 200 seeds show two leaders.",
	},
	{
		Name: "marked-once", Rule: "L3a", Left: "the timer runs on when the store marks another version of an unproven state",
		Edit: []edit{{"protocol/view.go", "(v.trust != unproven || c.Version != v.cell.Version)", "v.trust != unproven"}},
		Test: "TestTimelines/L03a-recurring",
		Note: "The same value must be put back twice within a lease: 2 of 200 seeds show two leaders.",
	},
	{
		Name: "inherited-trusted", Rule: "L3a", Left: "a member that starts after the loss trusts a released record from before, though the store knows that it is of another era",
		Edit:  []edit{{"protocol/view.go", "	case c.Unproven:\n", "	case c.Unproven && v.known():\n"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "void-moves-deadline", Rule: "L3a, L1", Left: "void writes no longer bound the deadline",
		Edit: []edit{{"protocol/outcome.go", "m.phase == Leading && p.remaining(now) < m.lease.held.remaining(now)", "m.phase == Idle && p.remaining(now) < m.lease.held.remaining(now)"}},
		Test: "TestTimelines/L03a-recurring",
		Note: "A store must be restored under a leader with a lease that a write of unknown outcome shortened.",
	},
	{
		Name: "version-is-enough", Rule: "L3a", Left: "a pending write counts as one that may replace any state with the version that it expects",
		Edit: []edit{{"protocol/lease.go", "return a.prev == c.Version && a.over == c.Record.Nonce", "return a.prev == c.Version"}},
		Test: "TestTimelines/L03a-recurring",
		Note: "The version must recur in a store that does not report its histories, with a write of unknown outcome over it.",
	},
}
