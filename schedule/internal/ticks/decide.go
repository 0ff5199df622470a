package ticks

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// decision is one pass over a state that was just read.
type decision struct {
	*Job
	f       Facts
	e       driver.Entry
	s       State
	changed bool
	// lost says why records may be missing, as this read shows.
	lost string
	step step
}

// Decide returns the value to write over an entry that was just read. It returns ErrUnchanged if
// there is nothing to write, ErrNotLeading, or an error that wraps ErrForeign. The caller writes
// within the attempt of the read (J1), and calls Settle with the outcome.
func (j *Job) Decide(e driver.Entry, f Facts) ([]byte, error) {
	if f.Lost {
		return nil, ErrNotLeading
	}
	d := decision{Job: j, f: f, e: e}
	if !e.Absent() {
		s, err := Read(e)
		if err != nil {
			return nil, err
		}
		d.s = s
	}
	d.checkHistory()
	if !d.confirms() {
		d.checkClocks()
		d.checkPlan()
		d.recordRun()
		d.settleOrphans()
		if d.policy.Once != nil {
			d.answer()
		} else {
			d.startDue()
		}
	}
	return d.encode()
}

func (d *decision) encode() ([]byte, error) {
	if d.changed {
		d.s.Seq, d.s.Nonce = max(d.s.Seq, d.seen.seq)+1, d.policy.Nonce()
		d.s.Draft = d.e.Absent()
		d.s.Next = d.planned(d.f.Now, &d.s)
		d.s.Era, d.s.At, d.s.ID, d.s.Token = d.e.Era, d.f.Now.UTC(), d.term.ID, d.term.Token
	}
	value, err := d.s.encode()
	if err != nil {
		return nil, err
	}
	d.step.state, d.step.era, d.step.asOf = d.s, d.e.Era, d.f.Now
	d.Job.step = d.step
	if !d.changed {
		return nil, ErrUnchanged
	}
	d.pending[d.s.Nonce] = d.step
	return value, nil
}

func (d *decision) tell(e Event) { d.step.events = append(d.step.events, e) }

// confirms reports whether the read shows that a tick of this term was recorded as started, by a
// write of unknown outcome (J2).
func (d *decision) confirms() bool {
	w, ours := d.pending[d.s.Nonce]
	if !ours || d.changed {
		return false
	}
	delete(d.pending, d.s.Nonce) // a stale read must not show it again
	d.wrote, d.seen = true, seenIn(&d.s, d.e.Era)
	d.step.events, d.step.start = w.events, w.start
	return w.start != nil
}

// checkHistory applies J5: if the state may lack ticks that were started, no tick starts that any
// leader may have started before.
func (d *decision) checkHistory() {
	reason, until := d.historyChange(), d.f.Now
	if d.repeatable() {
		d.changed = reason != "" // the next state is sound
		return
	}
	if reason == "" && !d.f.Disturbed.IsZero() {
		reason, until = "the election noticed a change of the store's history", d.f.Disturbed
		if !until.Add(d.f.Lease + d.policy.apart()).After(d.s.floor()) {
			return // nothing that may start is that old
		}
	}
	if reason == "" {
		return
	}
	d.s.Over, d.changed = later(d.s.Over, until.Add(d.f.Lease+d.policy.apart()).UTC()), true
	d.lost = reason
	if d.policy.Once == nil && (!d.s.Draft || d.s.Nonce != d.seen.nonce) { // else it is said
		d.tell(Event{Kind: EventHistory, Reason: reason, Until: d.s.Over})
	}
}

// historyChange returns why the state in the store may not be the last one that a leader wrote, or
// "". A stale read may look like that; then the write conflicts, and nothing follows.
func (d *decision) historyChange() string {
	s, seen := &d.s, &d.seen
	_, pending := d.pending[s.Nonce]
	switch {
	case d.e.Absent():
		return "the job has no state in the store"
	case s.Draft:
		return "the job is new"
	case d.e.Unproven:
		return "the store says that later states may be missing"
	case s.Era != d.e.Era, seen.known && seen.era != d.e.Era:
		return "the store was recreated"
	case s.Token > d.term.Token:
		return "the state is of a later term than the present one"
	case pending:
		return ""
	case d.wrote && s.Nonce != seen.nonce:
		return "another state replaced that of this term"
	case seen.known && (s.Seq < seen.seq || s.Token < seen.token || s.Seq == seen.seq && s.Nonce != seen.nonce):
		return "the store holds an older state than before"
	}
	return ""
}

// checkClocks applies J6.
func (d *decision) checkClocks() {
	limit := d.f.Now.Add(d.policy.apart())
	ahead := d.s.At
	if n := len(d.s.Ticks); n > 0 {
		ahead = later(ahead, d.s.Ticks[n-1].Planned)
	}
	if d.s.After.After(limit) && d.s.After.After(d.s.Over) {
		ahead = later(ahead, d.s.After)
		d.s.After, d.changed = d.f.Now.UTC(), true
	}
	if d.s.Over.After(d.f.Now.Add(farAhead)) {
		ahead = later(ahead, d.s.Over)
		if d.policy.AtLeastOnce {
			d.s.Over, d.changed = d.f.Now.UTC(), true
		}
	}
	if ahead.After(limit) && d.f.Now.Sub(d.alarmed).Abs() > time.Hour {
		d.tell(Event{Kind: EventClock, Reason: fmt.Sprintf("the state is of %v, %v ahead of this clock",
			ahead.UTC().Format(time.RFC3339), ahead.Sub(d.f.Now).Round(time.Second))})
	}
}

// checkPlan begins a new schedule now: its earlier instants were never planned.
func (d *decision) checkPlan() {
	if d.s.Plan == d.policy.Plan {
		return
	}
	if d.policy.Once != nil && d.s.Plan == "" {
		d.s.Plan, d.changed = d.policy.Plan, true
		return
	}
	if d.s.Plan != "" {
		d.tell(Event{Kind: EventPlan, Reason: fmt.Sprintf("%q replaces %q", d.policy.Plan, d.s.Plan)})
	}
	d.s.Plan, d.s.After, d.changed = d.policy.Plan, d.f.Now.UTC(), true
	d.s.Success.Since = d.s.After
}

// recordRun makes the state show the run of this process, and its end (J9).
func (d *decision) recordRun() {
	if d.run == nil {
		return
	}
	own := d.run.tick
	t := d.s.find(own.Planned)
	switch {
	case t != nil && (t.Lead != own.Lead || t.State != Started):
		// it is recorded, or was taken over
	case t == nil && !d.run.ended, d.run.ended:
		d.s.put(own)
		d.changed = true
		d.note(&own)
	}
	d.step.ended = d.run.ended
}

// note notes the end of a run for people.
func (d *decision) note(own *Tick) {
	switch own.State {
	case Finished:
		d.s.Success = Success{own.Ended.UTC(), later(d.s.Success.Since, own.Planned)}
		d.s.Day.add(&d.s.Day.Finished, own.Planned)
	case Failed:
		d.s.Day.add(&d.s.Day.Failed, own.Planned)
	case Started, Lost:
	}
}

// settleOrphans handles ticks without an end that no run of this process belongs to.
func (d *decision) settleOrphans() {
	for i := len(d.s.Ticks) - 1; i >= 0; i-- {
		t := &d.s.Ticks[i]
		switch {
		case t.State != Started, d.Running() && t.Planned.Equal(d.run.tick.Planned):
		case t.Lead == d.term.Lead: // recorded by this term, and never started (J2)
			d.takeBack(i)
		case !d.runsAgain(t):
			t.State, t.Ended, d.changed = Lost, d.f.Now.UTC(), true
			d.s.Day.add(&d.s.Day.Lost, t.Planned)
			d.tell(Event{Kind: EventLost, Planned: t.Planned, Count: 1, Reason: "the term of " + t.ID + " ended during the run"})
		}
	}
}

// takeBack removes the record of a start that did not happen. What ran before it did run.
func (d *decision) takeBack(i int) {
	d.changed = true
	if t := &d.s.Ticks[i]; t.Attempt > 1 {
		t.Attempt, t.Lead = t.Attempt-1, ""
		return
	}
	if planned := d.s.Ticks[i].Planned; d.s.After.Equal(planned) {
		d.s.After = planned.Add(-1) // it is due again
	}
	d.s.Ticks = slices.Delete(d.s.Ticks, i, i+1)
}

// runsAgain reports whether the run of an earlier term, which is over, is repeated (J4).
func (d *decision) runsAgain(t *Tick) bool {
	return d.policy.AtLeastOnce && t.Planned.After(d.s.Over) && d.f.Now.Sub(t.Planned) <= d.policy.Window &&
		(d.policy.Once == nil || d.policy.Once.is(t)) // others repeat their own tick
}

// mayStart reports whether a run may start.
func (d *decision) mayStart() bool {
	if d.f.Asked && len(d.pending) > 0 {
		d.changed = true // no earlier write can follow this one, and be taken for a lost run
	}
	if d.f.Asked || d.Running() {
		return false // J3, J8
	}
	if d.f.Remaining < d.policy.Needs { // J2: a renewal may be on its way
		d.step.wait = true
		return false
	}
	return true
}

// startDue records the next tick to run as started, and the ticks before it as missed.
func (d *decision) startDue() {
	if !d.mayStart() {
		return
	}
	for _, t := range d.s.Ticks {
		if t.State == Started && !t.Planned.After(d.f.Now) {
			d.start(Tick{Planned: t.Planned, Attempt: t.Attempt + 1})
			return
		}
	}
	runs, missed := d.classify(d.due())
	if len(runs) > 0 {
		missed = slices.DeleteFunc(missed, func(m missedTick) bool { return m.planned.After(runs[0]) })
	}
	d.miss(missed)
	if len(runs) > 0 {
		d.start(Tick{Planned: runs[0], Attempt: 1})
	}
}

func (d *decision) start(t Tick) {
	t.State, t.Token, t.Lead, t.ID = Started, d.term.Token, d.term.Lead, d.term.ID
	t.Began = d.f.Now.UTC()
	d.s.put(t)
	d.s.After = later(d.s.After, t.Planned)
	d.changed, d.step.start = true, &t
}

// due returns the planned instants until now that are not decided, in order. Of those beyond the
// window it returns at most 1,000.
func (d *decision) due() (planned []time.Time) {
	old := d.f.Now.Add(-d.policy.Window)
	for t := d.policy.Next(d.s.floor()); !t.IsZero() && !t.After(d.f.Now); t = d.policy.Next(t) {
		if d.s.find(t) == nil {
			planned = append(planned, t.UTC())
		}
		if len(planned) == 1000 && t.Before(old) {
			t = old
		}
	}
	return planned
}

type missedTick struct {
	planned time.Time
	overlap bool
}

// classify divides due ticks into those that run, in order, and those that are missed (J7, J8).
func (d *decision) classify(due []time.Time) (runs []time.Time, missed []missedTick) {
	var lastLate, last time.Time // of those that come one at a time
	for _, t := range due {
		if d.late(t) {
			lastLate = t
		} else if !d.within(t) {
			last, lastLate = t, time.Time{} // the newer one runs
		}
	}
	for _, t := range due {
		late, runsNow := d.late(t), false
		switch {
		case d.f.Now.Sub(t) > d.policy.Window:
		case late:
			runsNow = d.policy.CatchUp == CatchUpAll || d.policy.CatchUp == CatchUpLast && t.Equal(lastLate)
		default:
			runsNow = d.policy.Queue || t.Equal(last)
		}
		if runsNow {
			runs = append(runs, t)
		} else {
			missed = append(missed, missedTick{t, !late})
		}
	}
	return runs, missed
}

// late reports whether no leader of this term waited for the tick.
func (d *decision) late(planned time.Time) bool { return planned.Before(d.watching) }

// within reports whether the tick came due before the end of a run for an earlier one. It looks at
// the runs of this term: one write records the end of a run and the ticks within it, so a later
// term finds none.
func (d *decision) within(planned time.Time) bool {
	return slices.ContainsFunc(d.s.Ticks, func(t Tick) bool {
		return t.Lead == d.term.Lead && t.State != Started && planned.After(t.Planned) && !planned.After(t.Ended)
	})
}

func (d *decision) miss(missed []missedTick) {
	for _, overlap := range []bool{false, true} {
		e := Event{Kind: EventMissed, Reason: ReasonLate}
		n := &d.s.Missed.Late
		if overlap {
			e.Reason, n = ReasonOverlap, &d.s.Missed.Overlap
		}
		for _, m := range missed {
			if m.overlap == overlap {
				d.s.Missed.miss(n, m.planned)
				d.s.Day.add(&d.s.Day.Missed, m.planned)
				e.Planned, e.Count = m.planned, e.Count+1
			}
		}
		if e.Count > 0 {
			d.tell(e)
			d.s.After, d.changed = later(d.s.After, e.Planned), true
		}
	}
}
