package ticks

import (
	"fmt"
	"time"
)

// Invocation asks for one tick, in place of a schedule: a crontab on each machine does that.
type Invocation struct {
	// Name identifies the tick. Without a name its start does: a tick whose recorded start is less
	// than half a Period away is the same one.
	Name   string
	Period time.Duration
	// Start is when the process was started, by its wall clock.
	Start time.Time
}

// Of returns the tick of a state that the invocation asks for, or nil.
func (i *Invocation) Of(s *State) *Tick {
	for n := len(s.Ticks) - 1; n >= 0; n-- {
		if t := &s.Ticks[n]; i.is(t) {
			return t
		}
	}
	return nil
}

func (i *Invocation) is(t *Tick) bool {
	if i.Name != "" {
		return t.Name == i.Name
	}
	return 2*t.Planned.Sub(i.Start).Abs() < i.Period
}

// Verdict is the answer to an invocation, once it is in the store.
type Verdict struct {
	// Tick is the tick as the state shows it, with an end; zero if it never started.
	Tick Tick
	// Reason says why it never starts.
	Reason string
}

// Verdict returns the answer to the invocation in this term, or nil if there is none yet.
func (j *Job) Verdict() *Verdict { return j.verdict }

// answer starts the tick that was asked for, or says why it does not start.
func (d *decision) answer() {
	o, may := d.policy.Once, d.mayStart()
	t := o.Of(&d.s)
	switch reason := d.never(o); {
	case t != nil && t.State != Started && !(t.State == Lost && d.runsAgain(t)):
		d.step.verdict = &Verdict{Tick: *t}
	case !may:
	case t != nil && !t.Planned.After(d.f.Now): // its run was lost
		d.start(Tick{Planned: t.Planned, Name: t.Name, Attempt: t.Attempt + 1})
	case t != nil, o.Start.After(d.f.Now): // J6: the clock was set back
		d.step.wait = true
	case reason != "":
		d.step.verdict = &Verdict{Reason: reason}
	default:
		d.start(Tick{Planned: d.place(o), Name: o.Name, Attempt: 1})
	}
	if d.step.verdict != nil && len(d.pending) > 0 {
		d.changed = true // J3: no start of unknown outcome can follow
	}
}

// never returns why a tick without a record never starts, or "".
func (d *decision) never(o *Invocation) string {
	switch {
	case !d.repeatable() && !o.Start.After(d.s.Over): // J5, J10
		return fmt.Sprintf("nothing that was started until %s runs, because the record of an earlier run may be missing: %s",
			d.s.Over.Add(time.Second-1).Format(time.RFC3339), d.missing())
	case o.Name == "" && !o.Start.After(d.s.After):
		return "a later tick was started already" + d.last()
	case d.f.Now.Sub(o.Start) > d.policy.Window:
		return fmt.Sprintf("it is more than %v late", d.policy.Window)
	}
	return ""
}

// missing says why records may be missing.
func (d *decision) missing() string {
	switch {
	case d.e.Absent() || d.s.Draft:
		return "the job is new, or its state was deleted"
	case d.lost != "":
		return d.lost
	}
	return "the job was new then, or the history of the store had changed"
}

// last describes the last tick.
func (d *decision) last() string {
	if len(d.s.Ticks) == 0 {
		return ""
	}
	t := d.s.Ticks[len(d.s.Ticks)-1]
	return fmt.Sprintf(", at %s by the clock of %s", t.Planned.Format(time.RFC3339), t.ID)
}

// place returns the instant by which the state orders a new tick. Ticks with names need not come in
// the order of their starts.
func (d *decision) place(o *Invocation) time.Time {
	planned := o.Start
	if next := d.s.After.Add(1); !next.After(d.f.Now) {
		planned = later(planned, next)
	}
	for d.s.find(planned) != nil {
		planned = planned.Add(1)
	}
	return planned.UTC()
}

// repeatable reports whether ticks may run twice, so that lost records keep none from running.
func (d *decision) repeatable() bool { return d.policy.Once != nil && d.policy.AtLeastOnce }
