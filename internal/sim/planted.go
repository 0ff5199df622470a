package main

import "slices"

// planted are the bugs: one for every sentence of the rules that can be left out.
var planted = slices.Concat(plantedRules, plantedMembers, plantedStates)

// Faults that several bugs show.
const (
	twoLead = "two valid leases|two at work|may act by term .* while term|acts by term"
	tooSoon = "takes over .* after the state before it"
	unknown = "does not recognize it|and relies on"
	nobody  = "nobody leads|does not lead|was to take over|somebody leads: false"
)

// plantedRules leave out rules on leases, claims, releases and hand-overs.
var plantedRules = []bug{
	// L1: the deadline.
	{
		Name: "deadline-from-answer", Rule: "L1", Left: "the deadline is counted from the answer, not from before the send",
		Edit:  []edit{{"protocol/outcome.go", "	m.pending = nil\n	m.failures, m.conflicted,", "	a.sent = now.Instant\n	m.pending = nil\n	m.failures, m.conflicted,"}},
		Shows: twoLead,
	},
	{
		Name: "no-deadline", Rule: "L1", Left: "the leader has no deadline of its own",
		Edit:  []edit{{"protocol/lease.go", "	return deadline.left(now.Instant)", "	_ = deadline\n	return p.budget"}},
		Shows: twoLead,
	},
	{
		Name: "newest-attempt-counted", Rule: "L1", Left: "of several renewals with unknown outcomes the newest is believed",
		Edit:  []edit{{"protocol/lease.go", "left = min(left, m.pending[i].remaining(now))", "left = m.pending[i].remaining(now)"}},
		Shows: twoLead,
	},
	{
		Name: "shortened-lease-ignored", Rule: "L1", Left: "the deadline is that of the newest confirmed write, though a pending write has an earlier deadline",
		Edit:  []edit{{"protocol/lease.go", "left = min(left, m.pending[i].remaining(now))", "left = min(left, m.pending[i].remaining(now)+m.cfg.Lease)"}},
		Shows: twoLead,
	},
	{
		Name: "budget-by-config", Rule: "L1", Left: "the deadline is counted with the present lease, though the record was written with a shorter one",
		Edit:  []edit{{"protocol/lease.go", "	left := m.lease.held.remaining(now)\n", "	m.lease.held.budget = m.cfg.Budget\n	left := m.lease.held.remaining(now)\n"}},
		Shows: twoLead,
	},
	{
		Name: "interval-by-config", Rule: "L1, L8", Left: "a longer interval between renewals begins before the longer lease that it is for",
		Edit:  []edit{{"protocol/leader.go", "min(m.cfg.Renew, m.lease.held.renew)", "max(m.cfg.Renew, 0*m.lease.held.renew)"}},
		Shows: "has not asked the store",
	},
	{
		Name: "unknown-counted", Rule: "L1", Left: "a renewal whose outcome is unknown counts as applied",
		Edit:  []edit{{"protocol/outcome.go", "	default:\n		m.trouble(now, out, err)", "	default:\n		if a, ok := m.match(op.nonce); ok && a.purpose == renew {\n			m.confirm(now, a)\n		}\n		m.trouble(now, out, err)"}},
		Shows: twoLead,
	},
	{
		Name: "release-ends-nothing", Rule: "L1", Left: "the term counts as held until its release is confirmed",
		Edit:  []edit{{"protocol/transition.go", "	return m.phase == Leading && m.remaining(now) > 0", "	return (m.phase == Leading || m.phase == Releasing) && m.remaining(now) > 0"}},
		Shows: twoLead,
	},

	// L2: the follower's timer.
	{
		Name: "timer-from-send", Rule: "L2", Left: "the follower's timer starts when the read was sent, not when it was answered",
		Edit:  []edit{{"protocol/outcome.go", "	m.observe(now, c, sight{answer,", "	m.observe(op.sent, c, sight{answer,"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "timer-by-version", Rule: "L2, H2", Left: "the timer belongs to the version, so a request restarts it",
		Edit:  []edit{{"protocol/view.go", "term: c.Record.Term, nonce: c.Record.Nonce}", "term: c.Record.Term, nonce: c.Record.Nonce, version: c.Version}"}},
		Shows: "nobody leads .* after the leader died",
	},
	{
		Name: "draft-waited-out", Rule: "L2, L11", Left: "a draft is waited out, though a repeated write may put it there again",
		Edit:  []edit{{"protocol/view.go", "return c.vacant() && c.Record.Seq == 0", "return c.vacant() && c.Record.Seq == 1<<60"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "wait-clamped", Rule: "L2", Left: "the wait is clamped to nine tenths of the lease",
		Edit:  []edit{{"protocol/view.go", "	lease := max(cfg.Lease, v.cell.Record.Lease)\n", "	lease := max(cfg.Lease, v.cell.Record.Lease) * 9 / 10\n"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "own-lease-only", Rule: "L2", Left: "a follower waits its own lease instead of the one in the record",
		Edit:  []edit{{"protocol/view.go", "	lease := max(cfg.Lease, v.cell.Record.Lease)\n", "	lease := cfg.Lease\n"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "record-lease-only", Rule: "L2", Left: "a follower waits the record's lease, though its own is longer",
		Edit:  []edit{{"protocol/view.go", "	lease := max(cfg.Lease, v.cell.Record.Lease)\n", "	lease := v.cell.Record.Lease\n"}},
		Shows: twoLead + "|" + tooSoon,
	},

	// L3: the margin.
	{
		Name: "no-drift-margin", Rule: "L3", Left: "the margin has no part for clocks that drift apart",
		Edit:  []edit{{"protocol/config.go", "float64(lease) * 2 * r / (1 + r)", "float64(lease) * 0 * r / (1 + r)"}},
		Shows: twoLead,
	},
	{
		Name: "no-timer-margin", Rule: "L3", Left: "the margin has no part for timers that are late",
		Edit:  []edit{{"protocol/config.go", "	return drift + d + stopWithin", "	return drift + stopWithin"}},
		Shows: twoLead,
	},
	{
		Name: "no-stop-margin", Rule: "L3", Left: "the margin has no part for work that takes time to stop",
		Edit:  []edit{{"protocol/config.go", "	return drift + d + stopWithin", "	return drift + d"}},
		Shows: twoLead,
	},

	// L3: bounds that differ.
	{
		Name: "bounds-ignored", Rule: "L3", Left: "a follower waits for the lease alone, though its clocks may be worse than the leader allowed for",
		Edit:  []edit{{"protocol/config.go", "	if own <= r {", "	if own <= r || r < million {"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "unknown-bound-as-own", Rule: "L3", Left: "a leader that states no bound counts as one that allowed for the follower's bound",
		Edit:  []edit{{"protocol/view.go", "	return v.cell.Record.Drift\n", "	if v.cell.Record.Drift == 0 {\n		return million\n	}\n	return v.cell.Record.Drift\n"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "vacant-states-bound", Rule: "L3, L11", Left: "a vacant record states its writer's bound, and is waited out by it",
		Edit: []edit{
			{"protocol/machine.go", "	if p == create {\n		return 0", "	if p == 0 {\n		return 0"},
			{"protocol/view.go", "	if v.trust != sound || !v.held() {", "	if v.trust != sound {"},
		},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "malformed-by-own-bound", Rule: "L3, L15", Left: "a malformed record is waited out as if its holder had allowed for the follower's bound",
		Edit:  []edit{{"protocol/view.go", "	if v.trust != sound || !v.held() {", "	if v.cell.Kind == Malformed {\n		return million\n	}\n	if v.trust != sound || !v.held() {"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "old-state-bound", Rule: "L3, L10", Left: "a record that was put back is waited out by the bound that it states, though another's lease may be running",
		Edit: []edit{{"protocol/view.go", "	if v.trust != sound || !v.held() {", "	if !v.held() {"}},
		Test: "TestTimelines/L03-drift",
		Note: "A member that knows the later state sees the older one only when it next reads, so late that different bounds do not show.",
	},
	{
		Name: "reset-states-bound", Rule: "L3, L15", Left: "the record of a reset is waited out as if the former leader had allowed for the follower's bound",
		Edit: []edit{
			{"protocol/reset.go", "Seq: 0, Lease: lease,", "Seq: 0, Drift: record.MaxDrift, Lease: lease,"},
			{"protocol/candidate.go", "record.Record{Term: known, Seq: vacantSeq(c)}", "record.Record{Term: known, Seq: vacantSeq(c), Drift: c.Record.Drift}"},
			{"protocol/machine.go", "	r.Lease, r.Drift = m.leaseFor(p), m.boundFor(p)", "	r.Lease, r.Drift = m.leaseFor(p), max(r.Drift, m.boundFor(p))"},
			{"protocol/view.go", "	if v.trust != sound || !v.held() {", "	if v.trust != sound {"},
		},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "bound-overstated", Rule: "L3", Left: "a leader states a larger bound than it allowed for",
		Edit:  []edit{{"protocol/machine.go", "	return m.cfg.Drift\n", "	return record.MaxDrift\n"}},
		Shows: twoLead + "|" + tooSoon,
	},

	{
		Name: "no-deadline-timer", Rule: "L3", Left: "no timer is set for the deadline, so work that relies on its context hears of it late",
		Edit:  []edit{{"protocol/leader.go", "	wake.in(approach(m.remaining(now)))\n", "	wake.in(approach(m.cfg.Lease))\n"}},
		Shows: "hears .* late that term",
	},
	{
		Name: "one-look", Rule: "L3, L5", Left: "the timer for the deadline is set once, though a time daemon may slow it down",
		Edit:  []edit{{"protocol/leader.go", "		return left - left/8", "		return left"}},
		Shows: "hears .* late that term",
	},

	// L4: expiry is a latch.
	{
		Name: "no-latch", Rule: "L4, L6", Left: "expiry is computed and not remembered, so a late answer revives the lease",
		Edit:  []edit{{"protocol/lease.go", "	if m.phase == Leading && m.remaining(now) <= 0 {", "	if m.phase == Leading && m.remaining(now) <= -m.cfg.Lease {"}},
		Shows: "hears .* late that term|and now that it is not" + "|" + twoLead,
	},
	{
		Name: "lost-term-resumed", Rule: "L4", Left: "a renewal that turns out to be applied resumes a lost term",
		Edit:  []edit{{"protocol/outcome.go", "	case a.purpose == renew && m.phase == Leading:\n", "	case a.purpose == renew && (m.phase == Leading || m.phase == Ended):\n		m.phase = Leading\n"}},
		Shows: "hears .* late that term|and now that it is not" + "|" + twoLead,
	},
	{
		Name: "late-claim-wins", Rule: "L4", Left: "a claim wins whenever it is found applied, however long ago it was sent",
		Edit: []edit{
			{"protocol/outcome.go", "	case a.purpose == claim && m.phase == Candidate && a.remaining(now) > 0:", "	case a.purpose == claim && m.phase == Candidate:\n		if a.remaining(now) <= 0 {\n			a.sent = now.Instant\n		}"},
		},
		Shows: "wins term .* by a claim that it sent",
	},
	{
		Name: "own-record-waited-out", Rule: "L4", Left: "an incarnation that has ended its term waits for its own lease to expire, like the others",
		Edit:  []edit{{"protocol/candidate.go", "	case m.mine():\n", "	case m.mine() && c.Kind == Malformed:\n"}},
		Shows: "waits for its own record",
	},

	// L5: clocks.
	{
		Name: "leader-as-follower", Rule: "L5", Left: "a leader counts the smallest progress of its clocks, as a follower does",
		Edit:  []edit{{"protocol/lease.go", "byLeader(p.sent, p.budget)", "byFollower(p.sent, p.budget)"}},
		Shows: twoLead,
	},
	{
		Name: "sleep-ignored", Rule: "L5", Left: "a leader does not count the time for which its machine was suspended",
		Edit:  []edit{{"../clock/clock.go", "	return awake + max(0, asleep)", "	return awake + min(0, max(0, asleep))"}},
		Shows: twoLead,
	},
	{
		Name: "sleep-by-boottime", Rule: "L5", Left: "a leader counts the largest progress of three clocks, and so too little time if its machine sleeps and its clock is slewed",
		Edit:  []edit{{"../clock/clock.go", "	return awake + max(0, asleep)", "	_ = asleep\n	return max(awake, r.Boot-s.Boot)"}},
		Shows: twoLead,
	},
	{
		Name: "raw-clock-ignored", Rule: "L5", Left: "a leader counts on CLOCK_MONOTONIC alone, which a time daemon slews",
		Edit:  []edit{{"../clock/clock.go", "max(r.Mono-s.Mono, r.Raw-s.Raw)", "r.Mono - s.Mono"}},
		Shows: twoLead,
	},
	{
		Name: "follower-as-leader", Rule: "L5", Left: "a follower counts the largest progress of its clocks",
		Edit:  []edit{{"../clock/clock.go", "	return min(r.Mono-s.Mono, r.Raw-s.Raw)", "	return max(r.Mono-s.Mono, r.Raw-s.Raw)"}},
		Shows: twoLead + "|" + tooSoon,
	},

	// L6: the question.
	{
		Name: "any-term-answers", Rule: "L6", Left: "a question about an old term is answered by the present one",
		Edit:  []edit{{"protocol/transition.go", "	if m.Holds(now) && m.lease.term == term {", "	if m.Holds(now) {"}},
		Shows: "was told that it may act by term",
	},

	// L7: outcomes.
	{
		Name: "conflict-counted", Rule: "L7, H2", Left: "a conflict counts as a renewal",
		Edit:  []edit{{"protocol/outcome.go", "	case Conflict:\n", "	case Conflict:\n		if a, ok := m.match(op.nonce); ok && a.purpose == renew {\n			m.confirm(now, a)\n		}\n"}},
		Shows: twoLead,
	},
	{
		Name: "conflict-deposes", Rule: "L7", Left: "a leader steps down on a conflict, without a read",
		Edit:  []edit{{"protocol/outcome.go", "func (m *Machine) conflict(now clock.Reading) {\n", "func (m *Machine) conflict(now clock.Reading) {\n	if m.phase == Leading {\n		m.end(ErrDeposed)\n	}\n"}},
		Shows: "to nobody: another candidate",
	},
	{
		Name: "own-nonce-ignored", Rule: "L7", Left: "a member does not recognize its own writes",
		Edit:  []edit{{"protocol/outcome.go", "		if m.pending[i].nonce == nonce {", "		if m.pending[i].nonce == nonce+\"?\" {"}},
		Shows: unknown,
	},
	{
		Name: "own-nonce-not-read", Rule: "L7", Left: "a write with an unknown outcome is not recognized in a later read",
		Edit:  []edit{{"protocol/outcome.go", "func (m *Machine) reconcile(now clock.Reading, c *Cell) {\n	if a, ok := m.match(c.Record.Nonce); ok &&", "func (m *Machine) reconcile(now clock.Reading, c *Cell) {\n	if a, ok := m.match(c.Record.Nonce + \"?\"); ok &&"}},
		Shows: unknown,
	},
	{
		Name: "newest-attempt-known", Rule: "L7", Left: "of several pending writes only the newest is recognized",
		Edit:  []edit{{"protocol/outcome.go", "		if m.pending[i].nonce == nonce {", "		if i == len(m.pending)-1 && m.pending[i].nonce == nonce {"}},
		Shows: unknown,
	},
	{
		Name: "client-timeout-counted", Rule: "L7", Left: "a write that the store's client gave up at its own time limit counts as applied",
		Edit: []edit{{"../runner.go", "	case err == nil:\n		return protocol.Applied", "	case err == nil || errors.Is(err, context.DeadlineExceeded):\n		return protocol.Applied"}},
		Test: "TestFailedWritesDoNotCount", In: ".",
		Note: "The simulation has no runner, which turns errors into outcomes.",
	},
	{
		Name: "read-drops-pending", Rule: "L1, L7", Left: "a read makes a leader forget its pending writes, which may still be applied",
		Edit:  []edit{{"protocol/outcome.go", "	case Leading:\n		m.stepDownIfLost(c)", "	case Leading:\n		m.pending = nil\n		m.stepDownIfLost(c)"}},
		Shows: unknown,
	},
	{
		Name: "nonce-per-term", Rule: "L7", Left: "all writes of a term carry one nonce",
		Edit:  []edit{{"protocol/machine.go", "	r.Nonce = m.nonce()", "	r.Nonce = m.incarnation + strconv.FormatUint(r.Term, 10)"}, {"protocol/machine.go", "import (\n", "import (\n	\"strconv\"\n"}},
		Shows: twoLead,
	},
	{
		Name: "two-in-flight", Rule: "L7", Left: "a read under way does not keep the machine from starting another operation",
		Edit: []edit{{"protocol/machine.go",
			"	if m.op == nil { // also",
			"	if m.op == nil || !m.op.Write { // also"}},
		Shows: "while it waits for the answer",
	},

	// L8: retries.
	{
		Name: "no-retry", Rule: "L8", Left: "a leader steps down on the first error",
		Edit:  []edit{{"protocol/outcome.go", "	m.fail(now)\n", "	m.fail(now)\n	if m.phase == Leading {\n		m.end(ErrExpired)\n	}\n"}},
		Shows: "changes of leader in the calm",
	},
	{
		Name: "one-long-attempt", Rule: "L8", Left: "one attempt may take all the time until the deadline",
		Edit:  []edit{{"protocol/lease.go", "return (p.budget - p.renew) / 2", "return p.budget - p.renew"}},
		Shows: "changes of leader in the calm",
	},
	{
		Name: "retry-without-pause", Rule: "L8", Left: "a store that fails is asked again at once, without end",
		Edit: []edit{
			{"protocol/follow.go", "			return min(m.cfg.Renew, m.lease.held.renew) / 4", "			return m.cfg.Renew / 1000"},
			{"protocol/follow.go", "	return m.dithered(m.cfg.Renew)", "	return m.cfg.Renew / 1000"},
		},
		Shows: "operations within a lease",
	},

	// L9: stop, then release.
	{
		Name: "release-before-stop", Rule: "L9", Left: "a leader that is asked to leave releases before its work has stopped",
		Edit:  []edit{{"protocol/machine.go", "	m.lease.asked, m.leavingSince = why, now.Instant\n", "	m.lease.asked, m.leavingSince = why, now.Instant\n	m.phase, m.cause, m.again = Releasing, ErrReleased, true\n"}},
		Shows: "released while",
	},
	{
		Name: "campaign-while-ended", Rule: "L9", Left: "a member that lost its term campaigns before its work has stopped",
		Edit:  []edit{{"protocol/lease.go", "	m.phase = Ended\n", "	m.phase, m.pending = Candidate, nil\n"}},
		Shows: "elected .* while it works",
	},
	{
		Name: "panic-releases", Rule: "L9", Left: "a term with work that panicked is released",
		Edit:  []edit{{"protocol/machine.go", "		m.end(ErrAbandoned)", "		m.Finish(now, \"\", true, 0)"}},
		Shows: "released while",
	},
	{
		Name: "overdue-releases", Rule: "L9", Left: "a term is released while its overdue work runs",
		Edit:  []edit{{"protocol/leader.go", "		m.end(ErrOverdue)\n", "		m.Finish(now, \"\", true, 0)\n"}},
		Shows: "released while",
	},

	{
		Name: "overdue-claims-again", Rule: "L9", Left: "a member whose work was overdue claims again at once, instead of releasing its record",
		Edit: []edit{{"protocol/machine.go", "	lost := m.phase == Ended && !errors.Is(m.cause, ErrOverdue)", "	lost := m.phase == Ended && !errors.Is(m.cause, nil)"}},
		Test: "TestTimelines/L09-release",
		Note: "It deprives the others of a chance to lead, and does no harm otherwise.",
	},

	// L10: terms.
	{
		Name: "term-reset-on-release", Rule: "L10", Left: "a release sets the term back to 0",
		Edit:  []edit{{"protocol/release.go", "	r := m.record(now, term, ", "	r := m.record(now, term-term, "}},
		Shows: "released over",
	},
	{
		Name: "record-term-only", Rule: "L10", Left: "a claim takes the record's term plus one, and ignores the terms seen before",
		Edit:  []edit{{"protocol/candidate.go", "	return max(c.succeeded(c.Record.Term), c.succeeded(m.view.highTerm), c.succeeded(m.view.highestPushedTerm), c.Floor)", "	return max(c.succeeded(c.Record.Term), c.Floor)"}},
		Shows: "and has seen term",
	},
	{
		Name: "pushed-term-ignored", Rule: "L10", Left: "the term of a push that changes nothing else is forgotten",
		Edit:  []edit{{"protocol/outcome.go", "	m.view.highestPushedTerm = max(m.view.highestPushedTerm, c.Record.Term)\n", ""}},
		Shows: "and has seen term",
	},
	{
		Name: "floor-ignored", Rule: "L10", Left: "the floor of the store is ignored",
		Edit:  []edit{{"protocol/candidate.go", "	return max(c.succeeded(c.Record.Term), c.succeeded(m.view.highTerm), c.succeeded(m.view.highestPushedTerm), c.Floor)", "	return max(c.Record.Term, m.view.highestSeenTerm())"}},
		Shows: "claimed after term",
	},
	{
		Name: "floor-when-absent-only", Rule: "L10", Left: "the floor of the store counts only where there is no record",
		Edit:  []edit{{"protocol/candidate.go", "	return max(c.succeeded(c.Record.Term), c.succeeded(m.view.highTerm), c.succeeded(m.view.highestPushedTerm), c.Floor)", "	if c.Kind != Absent {\n		return max(c.Record.Term, m.view.highestSeenTerm())\n	}\n	return max(c.Record.Term, m.view.highestSeenTerm(), c.Floor)"}},
		Shows: "claimed after term",
	},
	{
		Name: "floor-from-before", Rule: "L10", Left: "a member claims over its own write without a read of the floor of its version",
		Edit: []edit{{"protocol/candidate.go", "	if m.view.source == ownWrite || !m.viewIsRecent(now) {", "	if !m.viewIsRecent(now) {"}},
		Test: "TestTimelines/L11-absence",
		Note: "After an expired timer the cell is read anyway (L13), and no earlier term is above that of the member's own record.",
	},

	// L11: absence.
	{
		Name: "absence-claimed", Rule: "L11", Left: "a candidate that finds nothing claims it",
		Edit:  []edit{{"protocol/candidate.go", "c.draft() || c.Kind == Absent && (!c.Pristine || m.view.highestSeenTerm() > 0)", "c.draft() || c.Kind == Absent && c.Record.Released"}},
		Shows: "absence claimed",
	},
	{
		Name: "vacant-at-once", Rule: "L11", Left: "a vacant record is claimed without waiting it out",
		Edit:  []edit{{"protocol/candidate.go", "	case c.Kind == Valid && c.Record.Released:\n		return m.delayA", "	case c.Kind == Valid && !c.Record.Held():\n		return m.delayA"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "vacant-forgets-term", Rule: "L11", Left: "a vacant record sets the term back to 0",
		Edit:  []edit{{"protocol/candidate.go", "record.Record{Term: known, Seq", "record.Record{Term: 0 * known, Seq"}},
		Shows: "and has seen term",
	},
	{
		Name: "vacant-own-lease", Rule: "L11", Left: "a vacant record states its writer's lease, though a longer one is known",
		Edit:  []edit{{"protocol/machine.go", "		return max(m.cfg.Lease, m.view.longLease)", "		return m.cfg.Lease"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "vanished-not-released", Rule: "L11", Left: "a leader does not put a released record where its own has vanished",
		Edit:  []edit{{"protocol/leader.go", "		m.lease.absence = c.Version\n", ""}},
		Shows: "leaves the absence",
	},
	{
		Name: "pristine-believed", Rule: "L11", Left: "a member that has seen a term believes a store that says it was never written to",
		Edit:  []edit{{"protocol/candidate.go", "c.draft() || c.Kind == Absent && (!c.Pristine || m.view.highestSeenTerm() > 0)", "c.draft() || c.Kind == Absent && !c.Pristine"}},
		Shows: "absence claimed" + "|" + twoLead,
	},
	{
		Name: "leader-re-creates", Rule: "L11", Left: "a leader writes its record again after it vanished",
		Edit:  []edit{{"protocol/leader.go", "		m.lease.absence = c.Version\n		m.end(Because(ErrVanished, c.Problem))\n", ""}},
		Shows: "renewed over",
	},
	{
		Name: "regression-ignored", Rule: "L11", Left: "a leader renews over a record of a lower term",
		Edit:  []edit{{"protocol/leader.go", "		m.end(ErrRegressed)\n", ""}},
		Shows: "renewed over",
	},
	{
		Name: "any-absence-released", Rule: "L11", Left: "a release is put over any absence, not only over the one that ended the term",
		Edit:  []edit{{"protocol/release.go", "	if c.Kind == Absent && m.lease.absence != \"\" && c.Version == m.lease.absence {", "	if c.Kind == Absent {"}},
		Shows: twoLead,
	},

	// L12: incarnations.
	{
		Name: "name-is-identity", Rule: "L12", Left: "a member takes a record with its name for its own",
		Edit:  []edit{{"protocol/candidate.go", "m.view.cell.Record.Incarnation == m.incarnation", "m.view.cell.Record.LeaderID == m.cfg.ID"}},
		Shows: twoLead + "|" + tooSoon + "|released over",
	},

	// L13: hints.
	{
		Name: "rumor-believed", Rule: "L13", Left: "a push that anybody can have sent counts like any other",
		Edit:  []edit{{"protocol/outcome.go", "	if c.Unverified {\n", "	if c.Unverified && m.phase == Idle {\n"}},
		Shows: "as a fact|and has read|" + twoLead,
	},
	{
		Name: "rumor-of-any-write", Rule: "L13, L2", Left: "the timer of a write that is read starts at a rumor of another write",
		Edit: []edit{{"protocol/rumor.go", " && c.Record.Nonce == r.nonce {", " {"}},
		Test: "TestTimelines/L13-rumors",
		Note: "The push of the leader's last write must be lost: 4 of 200 seeds show a claim that comes too soon.",
	},
	{
		Name: "rumor-of-lost-history", Rule: "L13, L3a", Left: "the timer of a state that a standby took over starts at a rumor from before",
		Edit: []edit{{"protocol/rumor.go", "v.trust == sound && v.change != remade && ", ""}},
		Test: "TestTimelines/L13-rumors",
		Note: "The last rumor must be of a write that the standby has, and a later write must be lost: 1 of 200 seeds shows two leaders.",
	},
	{
		Name: "rumor-outlives-read", Rule: "L13", Left: "a rumor still counts after a read has shown that it is false",
		Edit:  []edit{{"protocol/outcome.go", "	m.view.rumor = nil // the answer shows whether it was true\n", ""}},
		Shows: "operations within a lease|" + nobody,
	},
	{
		Name: "rumors-without-end", Rule: "L13", Left: "rumors postpone reads without end",
		Edit: []edit{{"protocol/rumor.go", "const credulity = 10", "const credulity = 10000"}},
		Test: "TestTimelines/L13-rumors",
		Note: "False rumors would have to go on for many leases after the leader has died.",
	},
	{
		Name: "old-push-believed", Rule: "L13", Left: "a pushed entry counts though it is older than the known state",
		Edit:  []edit{{"protocol/outcome.go", "	case !c.after(&m.view.cell):\n", "	case c.Kind == Foreign:\n"}},
		Shows: "is taken back by a push",
	},
	{
		Name: "pushed-absence-believed", Rule: "L13", Left: "a pushed absence counts without a read, and ends a lease",
		Edit:  []edit{{"protocol/outcome.go", "	case c.Kind != Valid || m.view.cell.Kind != Valid:\n", "	case c.Kind == Absent:\n		m.accept(now, c)\n		m.reconcile(now, &c)\n	case c.Kind != Valid || m.view.cell.Kind != Valid:\n"}},
		Shows: "by a push alone: record was deleted",
	},
	{
		Name: "own-old-push-believed", Rule: "L13", Left: "a push of the member's own write counts, though it is older than the known state",
		Edit:  []edit{{"protocol/outcome.go", "		if !m.view.cell.after(&c) {\n			m.accept(now, c)\n		}\n", "		m.accept(now, c)\n"}},
		Shows: "is taken back by a push",
	},
	{
		Name: "push-overtakes-unseen", Rule: "L13", Left: "the answer to a read counts, though a push overtook it",
		Edit:  []edit{{"protocol/outcome.go", "	if m.overtaken(op, &c) {", "	if m.overtaken(op, &c) && c.Kind == Foreign {"}},
		Shows: "terms went back|store holds an older state",
	},
	{
		Name: "push-ends-lease", Rule: "L13", Left: "a pushed entry of another holder ends a lease without a read",
		Edit:  []edit{{"protocol/outcome.go", "	case m.phase == Leading && c.stamp() != m.view.cell.stamp():\n", "	case m.phase == Leading && c.Kind == Foreign:\n"}},
		Shows: "by a push alone: another candidate",
	},
	{
		Name: "silence-trusted", Rule: "L13", Left: "where changes are pushed, silence causes no read",
		Edit:  []edit{{"protocol/follow.go", "	silence := m.cfg.heartbeat()", "	silence := 1000 * m.cfg.heartbeat()"}},
		Shows: nobody,
	},
	{
		Name: "claim-without-read", Rule: "L13", Left: "an expired timer causes a claim without a read",
		Edit: []edit{
			{"protocol/candidate.go", "	return m.view.source == answer && claimable.left(m.view.asOf) <= 0", "	return claimable.by == followers"},
			{"protocol/candidate.go", "	if m.view.source == ownWrite || !m.viewIsRecent(now) {", "	if m.view.source == ownWrite || (!m.view.held() || m.mine()) && !m.viewIsRecent(now) {"},
		},
		Shows: "writes in .* of calm|claimed after term" + "|" + twoLead + "|" + tooSoon,
	},

	// L15: malformed and foreign cells.
	{
		Name: "malformed-at-once", Rule: "L15", Left: "a malformed record is claimed over without waiting",
		Edit:  []edit{{"protocol/candidate.go", "	case c.Kind == Foreign:\n		return 0, false", "	case c.Kind == Malformed:\n		return 0, true\n	case c.Kind == Foreign:\n		return 0, false"}},
		Shows: twoLead + "|" + tooSoon,
	},
	{
		Name: "foreign-overwritten", Rule: "L15", Left: "foreign bytes are claimed over like a malformed record",
		Edit:  []edit{{"protocol/candidate.go", "	case c.Kind == Foreign:\n		return 0, false\n", ""}},
		Shows: "foreign bytes overwritten",
	},

	// L16: a canceled campaign.
	{
		Name: "claim-left-behind", Rule: "L16", Left: "a member that withdraws ignores its claim with an unknown outcome",
		Edit:  []edit{{"protocol/machine.go", "	if !won && !m.claimPending() {", "	if !won {"}},
		Shows: "withdrew and",
	},
	{
		Name: "endless-release", Rule: "L16", Left: "a release or withdrawal goes on until it is confirmed",
		Edit:  []edit{{"protocol/release.go", "	if !wake.reached(now, m.releaseBy()) {\n", "	if by := m.releaseBy(); by.left(now.Instant) > -1000*m.cfg.Lease {\n		wake.at(now, by)\n"}},
		Shows: "has been releasing for",
	},
	{
		Name: "slow-release", Rule: "L16", Left: "a release waits as long for a lost answer as a renewal does",
		Edit:  []edit{{"protocol/machine.go", "		limit = min(limit, m.cfg.ReleaseWithin()/2)\n", "		limit += 0\n"}},
		Shows: "was to take over",
	},
	{
		Name: "old-claim-adopted", Rule: "L16", Left: "a claim of an earlier campaign is adopted by the next one",
		Edit: []edit{{"protocol/release.go", "	m.pending, m.successor, m.lease.absence, m.lease.announced = nil, \"\", \"\", false", "	m.successor, m.lease.absence, m.lease.announced = \"\", \"\", false"}},
		Test: "TestTimelines/L16-withdraw",
		Note: "Three answers must be lost, and the first request must arrive last.",
	},

	// H1: hand-over.
	{
		Name: "no-head-start", Rule: "H1", Left: "a named successor has no head start",
		Edit:  []edit{{"protocol/candidate.go", "	if r.Successor != \"\" {\n		wait += m.headStart()\n	}\n", ""}},
		Shows: "was to take over",
	},
	{
		Name: "short-head-start", Rule: "H1", Left: "the head start does not cover the time between two polls",
		Edit:  []edit{{"protocol/follow.go", "	return max(m.cfg.HeadStart, gap+gap/8)", "	return max(m.cfg.HeadStart, gap/2)"}},
		Shows: "was to take over",
	},
	{
		Name: "nomination-is-veto", Rule: "H1, L13", Left: "the others wait for a named successor without end",
		Edit:  []edit{{"protocol/candidate.go", "	if r.Successor != \"\" {\n		wait += m.headStart()\n	}\n", "	if r.Successor != \"\" {\n		wait += 1000 * m.cfg.Lease\n	}\n"}},
		Shows: nobody,
	},
	{
		Name: "releaser-first", Rule: "H1", Left: "the member that released does not wait longer than the others",
		Edit:  []edit{{"protocol/candidate.go", "	if r.Incarnation == m.incarnation {\n		wait += m.headStart() + m.delayAfterDeclining()\n	}\n", ""}, {"protocol/nominee.go", "// delayAfterDeclining is", "var _ = (*Machine).delayAfterDeclining\n\n// delayAfterDeclining is"}},
		Shows: "was to take over",
	},

	// H2: requests.
	{
		Name: "request-changes-nonce", Rule: "H2", Left: "a request replaces the nonce of the record that it is added to",
		Edit:  []edit{{"record/request.go", "	out = append(out, `,\"request\":`...)", "	out = append(out, `,\"nonce\":\"`+q.To+r.Nonce[:len(r.Nonce)/2]+`\",\"request\":`...)"}},
		Shows: "nobody leads .* after the leader died",
	},
	{
		Name: "request-renews", Rule: "H2", Left: "a request in the leader's record counts as a renewal",
		Edit:  []edit{{"protocol/leader.go", "	case m.mine() && c.Record.Term == m.lease.term:\n", "	case m.mine() && c.Record.Term == m.lease.term:\n		m.lease.held.sent = m.view.heard\n"}},
		Shows: twoLead,
	},
	{
		Name: "request-deposes", Rule: "H2", Left: "a leader steps down when a request has changed the version of its record",
		Edit:  []edit{{"protocol/leader.go", "	case m.mine() && c.Record.Term == m.lease.term:\n", "	case m.mine() && c.Record.Term == m.lease.term && c.Record.Request == nil:\n"}},
		Shows: "to nobody: another candidate|by a push alone: another candidate",
	},
	{
		Name: "request-inherited", Rule: "H2", Left: "a claim copies the request of the record before",
		Edit:  []edit{{"protocol/candidate.go", "		Incarnation: m.incarnation, Priority: m.priority(), Metadata: m.cfg.Metadata,\n", "		Incarnation: m.incarnation, Priority: m.priority(), Metadata: m.cfg.Metadata, Request: m.view.cell.Record.Request,\n"}},
		Shows: "begins with a request",
	},
	{
		Name: "request-ignored", Rule: "H2", Left: "a leader ignores a request",
		Edit:  []edit{{"protocol/leader.go", "	m.readRequest(now)\n", ""}, {"protocol/leader.go", "// readRequest looks", "var _ = (*Machine).readRequest\n\n// readRequest looks"}},
		Shows: "was to take over|and was told of",
	},
	{
		Name: "metadata-unnoticed", Rule: "L13", Left: "changed metadata of a leader is not reported",
		Edit: []edit{
			{"protocol/transition.go", " && maps.Equal(l.Metadata, o.Metadata)", ""},
			{"protocol/transition.go", "	\"maps\"\n", ""},
		},
		Test: "TestChangedMetadataIsANewLeader",
		Note: "Members of the simulation have no metadata.",
	},
}
