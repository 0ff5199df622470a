package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/schedule/internal/ticks"
)

// check is the witness: it keeps a journal of the first acts of each tick, and judges by that. The
// record only excuses ticks that a rule skips.
type check struct {
	w     *world
	fault error
	stats stats

	journal  map[int64]*entry // by planned instant
	running  *runOf
	runs     []*runOf        // those that have ended
	over     time.Time       // the last state's
	plan     string          // the last state's
	recorded map[string]bool // starts that were in the store
	decided  map[int64]bool  // the planned instants of those
	firstUse time.Time       // no tick planned before may be demanded
	harm     time.Time       // the last damage
	harmed   bool            // no member has allowed for that damage yet
	excused  time.Time       // ticks planned until then may run twice: no member could notice
}

// entry is the fate of one tick.
type entry struct {
	planned  time.Time
	starts   int
	complete bool
	last     *runOf
}

type stats struct {
	Days                                               float64
	Ticks, Ran, Runs, Terms, Damages, Unnoticed, Twice int
}

func newCheck(w *world) *check {
	return &check{w: w, journal: map[int64]*entry{}, recorded: map[string]bool{}, decided: map[int64]bool{}, firstUse: w.now}
}

func (c *check) failf(format string, args ...any) {
	if c.fault == nil {
		c.fault = fmt.Errorf("at %s: "+format, append([]any{c.w.now.Format("02T15:04:05.000")}, args...)...)
		c.w.tracef("FAULT %v", c.fault)
	}
}

// startID identifies the start that a state records.
func startID(t *ticks.Tick) string {
	return fmt.Sprint(t.Planned.Unix(), " ", t.Lead, " ", t.Attempt)
}

// wrote sees each state that enters the cell.
func (c *check) wrote(s *ticks.State) {
	for i := range s.Ticks {
		if t := &s.Ticks[i]; t.State == ticks.Started {
			c.recorded[startID(t)] = true
			c.decided[t.Planned.Unix()] = true
		}
	}
	if s.Over.After(c.over) && s.Over.After(c.w.now.Add(c.w.plan.lease/2)) && !c.w.plan.fast {
		if c.w.plan.damage == unharmed && !c.over.IsZero() && !s.Draft && s.Seq > 2 {
			c.failf("leaders skip ticks until %s, though nothing happened", s.Over)
		}
		c.firstUse = latest(c.firstUse, s.Over.Add(2*c.w.plan.apart))
	}
	if s.Plan != c.plan { // an old one may return from a backup
		c.plan, c.firstUse = s.Plan, latest(c.firstUse, s.After.Add(2*c.w.plan.apart))
	}
	c.over = s.Over
	if c.harmed && s.Over.After(c.harm.Add(c.w.plan.lease)) {
		c.harmed = false
	}
}

// margin is how long after a moment leaders skip ticks because of it (J5), with the clocks' errors.
func (c *check) margin() time.Duration { return c.w.plan.lease + 4*c.w.plan.apart + time.Second }

func (c *check) damaged(d damage) {
	c.stats.Damages++
	c.harm, c.harmed = c.w.now, d != deleted
	if u := c.w.now.Add(c.margin() + c.w.plan.lease + time.Minute); u.After(c.firstUse) {
		c.firstUse = u
	}
}

// elected excuses what no member can notice: an older state was put back, the store does not show
// it, and this process has seen no later one.
func (c *check) elected(n *node) {
	c.stats.Terms++
	p := c.w.plan
	if c.harmed && n.bornAt.After(c.harm) && p.damage == restored && !p.eras && !p.unproven {
		c.stats.Unnoticed++
		c.excused = c.harm.Add(c.margin())
		c.w.tracef("no member can notice the damage")
	}
}

// starts judges the first act of a run.
func (c *check) starts(r *runOf) {
	c.stats.Runs++
	w, p := c.w, c.w.plan
	t := &r.tick
	late := r.wall.Sub(t.Planned)
	w.tracef("%s runs %s, attempt %d, %v late", r.node.id, t.Planned.Format("02T15:04:05"), t.Attempt, late)
	e := c.journal[t.Planned.Unix()]
	if e == nil {
		e = &entry{planned: t.Planned}
		c.journal[t.Planned.Unix()] = e
	}
	e.starts++
	before := e.last
	e.last = r
	if c.running != nil {
		c.failf("two runs at once: %s of %s, and %s of %s", t.Planned, r.node.id, c.running.tick.Planned, c.running.node.id)
	}
	c.running = r
	twice := e.starts > 1 && (!p.atLeastOnce || e.complete)
	switch {
	case twice && !t.Planned.After(c.excused):
		c.stats.Twice++
	case twice && p.atLeastOnce && before.term.deadline.Sub(before.ended) > 90*time.Second && w.troubled.Before(before.ended):
		c.failf("%s runs again on %s, though its end could be recorded", t.Planned, r.node.id)
	case twice && p.atLeastOnce:
	case twice:
		c.failf("%s runs %d times: %s", t.Planned, e.starts, r.node.id)
	}
	switch {
	case !w.valid(r.term):
		c.failf("%s starts without a valid term", r.node.id)
	case r.term.asked:
		c.failf("%s starts after it was asked to finish", r.node.id)
	case w.remaining(r.term) < p.needs:
		c.failf("%s starts with too little of its lease", r.node.id)
	case !c.recorded[startID(t)]:
		c.failf("%s starts %s without a record", r.node.id, t.Planned)
	case late < 0:
		c.failf("%s starts %s before it is due", r.node.id, t.Planned)
	case late > p.window+p.lease+time.Second:
		c.failf("%s starts %s too late: %v", r.node.id, t.Planned, late)
	case t.Attempt == 1 && !p.queue && c.within(r):
		c.failf("%s starts, though it came due during a run", t.Planned)
	case t.Attempt == 1 && !p.queue && p.catchUp == ticks.CatchUpNone && late > time.Minute+p.lease+time.Second:
		c.failf("%s starts %s %v late, without catching up", r.node.id, t.Planned, late)
	}
}

func (c *check) ends(r *runOf, complete bool) {
	if c.running == r {
		c.running = nil
	}
	r.ended = c.w.now
	c.runs = append(c.runs, r)
	if complete {
		c.journal[r.tick.Planned.Unix()].complete = true
	}
}

// progress judges, every few seconds, which ticks should have run by now. It demands nothing but
// where a leader with a sound clock was well for long enough.
func (c *check) progress() {
	w, p := c.w, c.w.plan
	t := w.leader
	if t == nil || t.asked || !t.deadline.IsZero() || t.node.away() || t.node.offset > time.Minute || c.running != nil {
		return
	}
	idle := w.now.Add(-time.Minute)
	if n := len(c.runs); n > 0 && c.runs[n-1].ended.After(idle) {
		return
	}
	well := latest(t.began, w.troubled)
	if w.now.Sub(well) < 90*time.Second {
		return
	}
	first := latest(c.firstUse, w.now.Add(-p.window+10*time.Minute))
	last := w.now.Add(-90 * time.Second)
	var before time.Time // the last tick that came due before this leader was well
	for at := p.cal.Next(first); at.Before(last); at = p.cal.Next(at) {
		switch e := c.journal[at.Unix()]; {
		case e != nil:
			if p.atLeastOnce && !p.fast && !e.complete && e.last.ended.Before(well) {
				c.failf("the run of %s was lost, and it never ran again", at)
			}
		case c.busyAt(at) && !p.queue, !p.atLeastOnce && c.decided[at.Unix()]: // it may be lost
		case at.After(well.Add(30 * time.Second)):
			c.failf("%s did not run, though %s was well", at, t.node.id)
		case c.busyAt(at) || at.After(well.Add(-30*time.Second)) || p.fast:
		case p.catchUp == ticks.CatchUpAll:
			c.failf("%s did not run, though all are caught up with", at)
		default:
			before = at
			continue
		}
		before = time.Time{}
	}
	if p.catchUp == ticks.CatchUpLast && !before.IsZero() {
		c.failf("%s did not run, though it is the last one before a failover", before)
	}
}

// within reports whether the tick came due during an earlier run of the same term.
func (c *check) within(r *runOf) bool {
	for i := len(c.runs) - 1; i >= 0 && c.runs[i].term == r.term; i-- {
		o := c.runs[i]
		if at := r.tick.Planned.Add(r.began.Sub(r.wall)); at.After(o.began.Add(25*time.Second)) && at.Before(o.ended.Add(-25*time.Second)) {
			return true
		}
	}
	return false
}

// busyAt reports whether a run went on when the tick came due, by any clock.
func (c *check) busyAt(planned time.Time) bool {
	const around = 25 * time.Second
	for i := len(c.runs) - 1; i >= 0 && i > len(c.runs)-100; i-- {
		if r := c.runs[i]; !planned.Before(r.began.Add(-around)) && !planned.After(r.ended.Add(around)) {
			return true
		}
	}
	return false
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// finish counts the ticks.
func (c *check) finish() {
	p := c.w.plan
	c.stats.Days = c.w.now.Sub(p.start).Hours() / 24
	for at := p.cal.Next(p.start); at.Before(c.w.now); at = p.cal.Next(at) {
		c.stats.Ticks++
		if e := c.journal[at.Unix()]; e != nil {
			c.stats.Ran++
		}
	}
	if p.ticks > 0 && c.stats.Ticks != p.ticks {
		c.failf("the year has %d ticks of %q, not %d", c.stats.Ticks, p.spec, p.ticks)
	}
}
