package main

import "github.com/tenure-go/tenure/internal/overlay"

// Faults that several bugs show.
const (
	twice    = "runs [0-9]+ times"
	overlap  = "two runs at once"
	unrecord = "without a record"
	idle     = "did not run"
)

func in(file, old, text string) []overlay.Edit {
	return []overlay.Edit{{File: file, Old: old, New: text}}
}

// planted are the bugs, in the order of the rules.
var planted = []bug{
	{Name: "deposed-writes", Rule: "J1", Left: "a leader writes after its term",
		Edit: in("decide.go", "	if f.Lost {", "	if f.Lost && e.Absent() {"), Test: "TestOnlyLeadersWrite"},
	{Name: "unknown-starts", Rule: "J2", Left: "a tick starts though the outcome of its record is unknown",
		Edit: in("job.go", "	case !errors.Is(err, ErrUnchanged):", "	case !errors.Is(err, ErrUnchanged) && (errors.Is(err, driver.ErrConflict) || s.start == nil):"), Shows: unrecord + "|" + twice + "|" + overlap},
	{Name: "conflict-starts", Rule: "J2", Left: "a tick starts though the store refused its record",
		Edit: in("job.go", "	case !errors.Is(err, ErrUnchanged):", "	case !errors.Is(err, ErrUnchanged) && !(errors.Is(err, driver.ErrConflict) && s.start != nil):"), Shows: unrecord + "|" + twice},
	{Name: "confirmed-twice", Rule: "J2", Left: "a stale read confirms a start once more",
		Edit: in("decide.go", "	delete(d.pending, d.s.Nonce) //", "	//"), Test: "TestStaleReadConfirmsNothingTwice"},
	{Name: "no-time-left", Rule: "J2", Left: "a tick starts though too little of the lease is left",
		Edit: in("job.go", ", l.Remaining < j.policy.Needs:", ":"), Test: "TestTooLittleTime"},
	{Name: "starts-after-term", Rule: "J2", Left: "a confirmed tick starts though the term is over",
		Edit: in("job.go", "	case l.Lost, l.Asked,", "	case l.Asked,"), Shows: "without a valid term|" + overlap},
	{Name: "start-not-taken-back", Rule: "J2", Left: "the record of a start that did not happen stays, so the tick counts as lost",
		Edit: in("decide.go", "		case t.Lead == d.term.Lead: //", "		case t.Lead == d.term.Lead && t.Attempt > 9: //"), Test: "TestStartIsTakenBack"},
	{Name: "starts-when-asked", Rule: "J3", Left: "a tick starts after the leader was asked to finish",
		Edit: in("job.go", "	case l.Lost, l.Asked,", "	case l.Lost,"), Test: "TestAskedStartsNothing"},
	{Name: "lost-runs-again", Rule: "J4", Left: "a lost run is repeated, though no tick may run twice",
		Edit: in("decide.go", "	return d.policy.AtLeastOnce && t.Planned", "	return t.Planned"), Shows: twice},
	{Name: "lost-stays-lost", Rule: "J4", Left: "a lost run is not repeated, though each tick must run",
		Edit: in("decide.go", "	return d.policy.AtLeastOnce && t.Planned", "	return d.policy.Queue && d.policy.AtLeastOnce && !d.policy.Queue && t.Planned"), Shows: "was lost, and it never ran again"},
	{Name: "own-by-token", Rule: "J4", Left: "the token identifies the term that started a tick, though tokens fall with a restored store",
		Edit: in("decide.go", "		case t.Lead == d.term.Lead: //", "		case t.Token == d.term.Token: //"), Test: "TestTokensMayFall"},
	{Name: "future-orphan", Rule: "J4, J6", Left: "a lost run is repeated before its tick is due",
		Edit: append(in("decide.go", "t.State == Started && !t.Planned.After(d.f.Now) {", "t.State == Started {"),
			in("job.go", "	case c.Planned.After(now):", "	case c.Planned.After(now.Add(9 * time.Hour)):")...), Shows: "before it is due"},
	{Name: "absence-as-usual", Rule: "J5", Left: "a job without a state runs at once",
		Edit: in("decide.go", "		return \"the job has no state in the store\"", "		return \"\""), Test: "TestFirstUse"},
	{Name: "draft-believed", Rule: "J5", Left: "the first write in an empty cell counts, though the network may repeat it",
		Edit: in("decide.go", "		return \"the job is new\"", "		return \"\""), Test: "TestRepeatedDraft"},
	{Name: "unproven-believed", Rule: "J5", Left: "a state that the store marks as unproven counts",
		Edit: in("decide.go", "	case d.e.Unproven:", "	case d.e.Unproven && d.f.Lost:"), Shows: twice},
	{Name: "era-ignored", Rule: "J5", Left: "a state of an earlier era counts",
		Edit: in("decide.go", "	case s.Era != d.e.Era, seen.known && seen.era != d.e.Era:", "	case seen.known && seen.era != d.e.Era && d.f.Lost:"), Shows: twice},
	{Name: "later-token-ignored", Rule: "J5", Left: "a state of a later term than the leader's counts",
		Edit: in("decide.go", "	case s.Token > d.term.Token:", "	case s.Token > d.term.Token && d.f.Lost:"), Test: "TestHistory"},
	{Name: "replaced-ignored", Rule: "J5", Left: "a state counts that replaced a later one of this term",
		Edit: in("decide.go", "	case d.wrote && s.Nonce != seen.nonce:", "	case d.wrote && s.Nonce != seen.nonce && d.f.Lost:"), Test: "TestHistory"},
	{Name: "older-state-believed", Rule: "J5", Left: "a state counts that is older than one that this process saw",
		Edit: in("decide.go", "	case seen.known && (s.Seq <", "	case seen.known && d.f.Lost && (s.Seq <"), Test: "TestHistory"},
	{Name: "notice-ignored", Rule: "J5", Left: "a leader forgets that its election noticed a restored store",
		Edit: in("decide.go", "	if reason == \"\" && !d.f.Disturbed.IsZero() {", "	if reason == \"\" && !d.f.Disturbed.IsZero() && d.f.Lost {"), Shows: twice},
	{Name: "lease-not-waited", Rule: "J5", Left: "after a change of history only the present moment counts, though an earlier leader may start ticks for one more lease",
		Edit: in("decide.go", "until.Add(d.f.Lease+d.policy.apart()).UTC()), true", "until.Add(d.policy.apart()).UTC()), true"), Test: "TestHistory"},
	{Name: "offset-not-waited", Rule: "J5, J6", Left: "after a change of history clocks count as exact",
		Edit: in("decide.go", "until.Add(d.f.Lease+d.policy.apart()).UTC()), true", "until.Add(d.f.Lease).UTC()), true"), Test: "TestHistory"},
	{Name: "early-start", Rule: "J6", Left: "a tick starts before it is due",
		Edit: append(in("decide.go", "!t.IsZero() && !t.After(d.f.Now); t =", "!t.IsZero() && !t.After(d.f.Now.Add(time.Minute)); t ="),
			in("job.go", "	case c.Planned.After(now):", "	case c.Planned.After(now.Add(time.Hour)):")...), Shows: "before it is due"},
	{Name: "future-stays-consumed", Rule: "J6", Left: "a fast clock consumes the ticks that it never started",
		Edit: in("decide.go", "	if d.s.After.After(limit) &&", "	if d.f.Lost && d.s.After.After(limit) &&"), Shows: idle},
	{Name: "clock-set-back", Rule: "J6", Left: "a confirmed tick starts though the clock was set back before it",
		Edit: in("job.go", "	case c.Planned.After(now):", "	case c.Planned.After(now.Add(time.Hour)):"), Test: "TestClockSetBack"},
	{Name: "none-catches-up", Rule: "J7", Left: "ticks that no leader waited for run late, against the policy",
		Edit: in("decide.go", "d.policy.CatchUp == CatchUpAll ||", "d.policy.CatchUp != CatchUpLast ||"), Shows: "without catching up"},
	{Name: "last-is-missed", Rule: "J7", Left: "the last tick that no leader waited for is missed",
		Edit: in("decide.go", "d.policy.CatchUp == CatchUpLast && t.Equal(lastLate)", "d.policy.CatchUp == CatchUpLast && t.After(lastLate)"), Shows: "the last one before a failover"},
	{Name: "all-but-some", Rule: "J7", Left: "of all ticks that no leader waited for, only the last runs",
		Edit: in("decide.go", "d.policy.CatchUp == CatchUpAll || d.policy.CatchUp == CatchUpLast &&", "d.policy.CatchUp != CatchUpNone &&"), Shows: "all are caught up with"},
	{Name: "no-window", Rule: "J7", Left: "a tick runs however late it is",
		Edit: in("decide.go", "		case d.f.Now.Sub(t) > d.policy.Window:", "		case d.f.Now.Sub(t) > 99*d.policy.Window:"), Shows: "too late"},
	{Name: "sleep-unnoticed", Rule: "J7", Left: "the ticks of a time in which the machine slept count as waited for",
		Edit: in("job.go", "Abs() > maxSilence {", "Abs() > 1000*maxSilence {"), Test: "TestClockSetForward"},
	{Name: "tick-between", Rule: "J7", Left: "a tick that comes due while a write is under way is skipped",
		Edit: in("job.go", "	j.next = j.nextAfter(s.asOf, &s.state)", "	j.next = j.nextAfter(now, &s.state)"), Test: "TestTickDuringAWrite"},
	{Name: "runs-overlap", Rule: "J8", Left: "a tick starts during the run of another",
		Edit: append(in("decide.go", "	if d.f.Asked || d.Running() {", "	if d.f.Asked {"),
			in("job.go", "	case j.Running():\n		return time.Time{}", "	case j.Running() && asOf.IsZero():\n		return time.Time{}")...), Test: "TestOneRunAtATime"},
	{Name: "skipped-runs", Rule: "J8", Left: "a tick within a run starts after it, though it should be skipped",
		Edit: in("decide.go", "		} else if !d.within(t) {", "		} else {"), Shows: "came due during a run"},
	{Name: "queued-is-missed", Rule: "J8", Left: "a tick within a run is missed, though it should wait",
		Edit: in("decide.go", "			runsNow = d.policy.Queue || t.Equal(last)", "			runsNow = t.Equal(last)"), Shows: idle},
	{Name: "end-not-recorded", Rule: "J9", Left: "the end of a run is not recorded, so it is repeated after the term",
		Edit: in("decide.go", "	case t == nil && !d.run.ended, d.run.ended:", "	case t == nil && !d.run.ended:"), Shows: "though its end could be recorded|came due during a run"},
	{Name: "dropped-runs-again", Rule: "J10", Left: "a tick that is dropped for room may start again",
		Edit: in("state.go", "		s.Over = later(s.Over, s.Ticks[i].Planned)\n", ""), Test: "TestRoom"},
	{Name: "plan-in-the-past", Rule: "J10", Left: "a new schedule catches up with instants that were never planned",
		Edit: in("decide.go", "d.policy.Plan, d.f.Now.UTC(), true", "d.policy.Plan, d.s.After, true"), Test: "TestNewPlan"},
}
