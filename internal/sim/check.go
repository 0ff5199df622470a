package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// check judges a run. Of the protocol's answers it uses only Holds, the answer that a user would
// act upon.
type check struct {
	w       *world
	fault   error
	highest uint64            // the highest term ever elected or held in the store
	owner   map[uint64]string // the holder of each term
	usurped map[tenure]bool   // terms whose record another writer than their holder has replaced
	claims  map[tenure]time.Duration
	// byOutsider has the nonces of claims by members that are not the nominee.
	byOutsider map[string]bool
	token      uint64        // the highest token that the resource has seen
	elected    time.Duration // when a member was last elected
	// amnesty: an older state was put back. Until then two leaders are allowed.
	amnesty time.Duration
	// fragile: an older state was put back. Until then the amnesty begins as soon as a member
	// starts without knowledge of the past.
	fragile time.Duration
	// misled is like fragile, while the cell holds a write of a former life of the store.
	misled time.Duration
	// lapsed is a change of the store's history over which no member has written.
	lapsed *lapse
}

// forgive allows two leaders after an older state was put back, if a member may believe that state.
// Members that know the last state do not believe the older one. Others cannot distinguish it. No
// member can where a shorter lease than the last may come back, or where the store does not vouch
// for terms (docs/guarantees.md).
func (c *check) forgive(until time.Duration) {
	c.fragile = until
	blurred := c.w.plan.mixed || c.w.plan.forgets()
	for _, n := range c.w.nodes {
		blurred = blurred || n.alive && !c.knows(n)
	}
	if blurred {
		c.amnesty = until
	}
}

// knows reports whether n has seen the last state. A member that polls may have last seen exactly
// the state that comes back. Then its timer goes on.
func (c *check) knows(n *node) bool {
	cell, _ := n.m.InView()
	return cell.Version == c.w.store.cell.Version && cell.Record.Nonce == c.w.store.cell.Record.Nonce
}

// joined records that a member starts without any knowledge.
func (c *check) joined() {
	if until := max(c.fragile, c.misled); c.w.now < until {
		c.amnesty = max(c.amnesty, until)
	}
}

// tenure is one term of one holder.
type tenure struct {
	incarnation string
	term        uint64
}

func newCheck(w *world) *check {
	c := &check{w: w, owner: map[uint64]string{}, usurped: map[tenure]bool{}, claims: map[tenure]time.Duration{}, byOutsider: map[string]bool{}}
	if !w.plan.pristine {
		c.highest = w.plan.startSeq // other leaders were here, long ago
	}
	return c
}

func (c *check) failf(format string, args ...any) {
	if c.fault == nil {
		c.fault = fmt.Errorf("at %v: "+format, append([]any{c.w.now}, args...)...)
		c.w.tracef(nil, "FAULT %v", c.fault)
	}
}

// excused reports whether the checks do not apply now. No lease can protect against an old backup,
// or against a machine that was frozen with its clocks, while leases from that time may last.
func (c *check) excused(n *node) bool {
	return c.w.now < c.amnesty || n != nil && n.excused()
}

// unordered reports whether tokens may fall: in the same cases, and where the store forgets them.
func (c *check) unordered(n *node) bool { return c.excused(n) || c.w.plan.forgets() }

// election checks the beginning of a term.
func (c *check) election(n *node, term uint64) {
	c.w.stats.elections++
	c.elected = c.w.now
	if term < c.highest {
		if !c.unordered(n) {
			c.failf("%s elected with term %d after term %d", n.incarnation(), term, c.highest)
		}
		n.below = term // it claimed on what it had read before the store lost the higher term
	}
	if n.inside {
		c.failf("%s elected with term %d while it works for term %d", n.incarnation(), term, n.term)
	}
	if n.fitness.heard {
		c.failf("%s elected with term %d, and is not eligible", n.incarnation(), term)
	}
	c.timely(n, term)
	c.own(term, n.incarnation())
	c.alone(n, term)
	for _, o := range c.w.nodes {
		if o == n || !o.alive || c.excused(o) || c.excused(n) {
			continue
		}
		if o.working && !o.stalled && o.proc.stillUntil <= c.w.now {
			c.failf("two at work: %s term %d, %s term %d", n.incarnation(), term, o.incarnation(), o.term)
		}
	}
}

// always checks after every event that no two members hold a valid lease, and that no two work at
// the same time.
func (c *check) always() {
	if c.w.now < c.amnesty {
		return
	}
	elder := c.w.elder != nil && c.w.elder.holds()
	var leads, works *node
	for _, n := range c.w.nodes {
		if !n.alive || n.excused() {
			continue
		}
		if n.m.Holds(n.now()) {
			if elder {
				c.failf("two valid leases: %s term %d, and the elder's", n.incarnation(), n.m.Term())
			}
			if leads != nil {
				c.failf("two valid leases: %s term %d, and %s term %d", n.incarnation(), n.m.Term(), leads.incarnation(), leads.m.Term())
			}
			leads = n
		}
		if n.working && !n.stalled && n.proc.stillUntil <= c.w.now {
			if works != nil {
				c.failf("two at work: %s term %d, %s term %d", n.incarnation(), n.term, works.incarnation(), works.term)
			}
			works = n
		}
	}
}

// alone checks that no other member holds a valid lease. Only a claim or a release could let a
// second member lead.
func (c *check) alone(n *node, term uint64) {
	for _, o := range c.w.nodes {
		if o == n || !o.alive || c.excused(o) || c.excused(n) {
			continue
		}
		if o.m.Holds(o.now()) {
			c.failf("two valid leases: term %d, and %s term %d", term, o.incarnation(), o.m.Term())
		}
	}
}

func (c *check) own(term uint64, who string) {
	if was, ok := c.owner[term]; ok && was != who && !c.unordered(nil) {
		c.failf("term %d belongs to %s and %s", term, was, who)
	}
	c.owner[term] = who
	c.highest = max(c.highest, term)
}

// answer checks the answer to the question whether work may act.
func (c *check) answer(n *node, term uint64, yes bool) {
	if yes && n.doubted == term {
		c.failf("%s was told that term %d is over, and now that it is not", n.incarnation(), term)
	}
	if yes && c.highest > term && n.below != term && !c.unordered(n) {
		c.failf("%s may act by term %d while term %d is held", n.incarnation(), term, c.highest)
	}
	if !yes {
		n.doubted = term
	}
}

// act checks the use of the resource. A prompt act is safe without a token. A late act must carry
// an old token if another member leads.
func (c *check) act(n *node, term uint64, prompt bool, left time.Duration) {
	if term < c.token && prompt && n.below != term && !c.unordered(n) {
		c.failf("%s acts by term %d (%v left when it asked) after an act by term %d", n.incarnation(), term, left, c.token)
	}
	c.token = max(c.token, term)
}

// lost checks that a term ends early only if another state is, or was, in place of its record. A
// stale read may show an earlier state: this costs a term and does no other harm.
func (c *check) lost(n *node, t protocol.Transition) {
	switch {
	case errors.Is(t.Cause, protocol.ErrExpired):
		late := c.w.now - n.due
		if !n.stalled && !c.w.plan.step && n.proc.stillUntil < n.due && late > n.late {
			c.failf("%s hears %v late that term %d is over", n.incarnation(), late, t.Term)
		}
		c.neglected(n, t.Term)
		if c.unhindered(n) {
			c.failf("%s lost term %d to its own deadline, though nothing hindered it", n.incarnation(), t.Term)
		}
		return
	case errors.Is(t.Cause, protocol.ErrOverdue), errors.Is(t.Cause, protocol.ErrAbandoned):
		return
	}
	if !c.usurped[tenure{n.incarnation(), t.Term}] && !c.w.plan.stale {
		c.failf("%s lost term %d to nobody: %v", n.incarnation(), t.Term, t.Cause)
	}
}

// asking checks that a member accepts only an offer to it, and that a member with precedence does
// not ask too early or too often.
func (c *check) asking(n *node) {
	shown := n.shown()
	if q := shown.Record.Request; q != nil {
		c.accepts(n, q)
		return
	}
	lease := c.w.plan.shortest()
	if n.asked > 0 && c.w.now-n.asked < 9*lease {
		c.failf("%s asks for a hand-over again after %v", n.incarnation(), c.w.now-n.asked)
	}
	if age := c.w.now - n.born; age < lease*18/10 {
		c.failf("%s asks for a hand-over when it is %v old", n.incarnation(), age)
	}
	if f := &n.fitness; f.heard || f.since > 0 && c.w.now-f.since < lease*18/10 {
		c.failf("%s asks for a hand-over %v after it became eligible or ceased to be", n.incarnation(), c.w.now-f.since)
	}
	n.asked = c.w.now
}

// alarm checks that a member reports a lower term only if terms fell. The terms of vacant records
// may fall where records vanish, or where the same foreign bytes return.
func (c *check) alarm(n *node, t protocol.Transition) {
	p := &c.w.plan
	if errors.Is(t.Cause, protocol.ErrRegressed) && !(p.stale || p.erase || p.foreign && (p.replay || p.slow) || p.rollback || p.freeze || p.recurs() || p.forgets()) {
		c.failf("%s says that terms went back, and they did not", n.incarnation())
	}
}

// withdrawn checks that a member that withdrew left no record that others must wait for, unless
// something prevented its release.
func (c *check) withdrawn(n *node) {
	r := &c.w.store.cell.Record
	if c.unhindered(n) && r.Held() && r.Incarnation == n.incarnation() {
		c.failf("%s withdrew and left term %d in the store", n.incarnation(), r.Term)
	}
}

// closing checks that a release or a withdrawal takes bounded time.
func (c *check) closing(n *node) {
	switch {
	case n.m.Phase() != protocol.Releasing:
		n.closing = 0
		return
	case n.closing == 0 || n.proc.stillUntil > n.closing:
		n.closing = c.w.now
	}
	bound := min(c.w.longest()/3, 2*time.Second)*12/10 + 200*time.Millisecond
	if c.w.now-n.closing > bound {
		c.failf("%s has been releasing for %v", n.incarnation(), c.w.now-n.closing)
	}
}

// waited checks that no member replaces a record with a lease before that lease is over, by true
// time (L2, L3), whether its holder is alive or not. The lease counts from when the record was put
// there, which is before any member has seen it.
func (c *check) waited(n *node, old *protocol.Cell, r *record.Record) {
	p, was := &c.w.plan, &old.Record
	mine := was.Held() && was.Incarnation == r.Incarnation
	free := old.Kind == protocol.Absent || was.Released || mine
	if s := c.w.store; s.strayed && s.life.era > 0 && n != nil && n.born < s.life.from {
		// A member that saw the store recreated believes nothing from before (L3a).
		free = false
	}
	if c.w.store.inherited(old) {
		free = false // later writes may be lost
	}
	if free || n == nil || p.loses || c.w.now < max(c.amnesty, c.fragile) {
		return
	}
	bound := 0.0
	if old.Kind == protocol.Valid && was.Held() {
		bound = float64(was.Drift) / 1e6
	}
	lease, its := float64(max(was.Lease, r.Lease)), n.proc.bound
	least := time.Duration(lease * max(1, (1+its)/(1+bound)) / (1 + c.w.cfg.Drift*its))
	if waited := c.w.now - c.w.store.changed; waited < least-time.Millisecond {
		c.failf("%s takes over %v after the state before it, which may be held for %v",
			r.Incarnation, waited, least)
	}
}

// busyEnough checks that a run does not pass only because nothing happens. There is a leader for as
// much of the time as the faults of this run allow, and leaders change as often as they must.
func (c *check) busyEnough() {
	w, p := c.w, &c.w.plan
	if least := w.cfg.Hour - time.Duration(p.hardship()*float64(w.cfg.Hour)); w.stats.led < least {
		c.failf("there was a leader for only %v, less than %v", w.stats.led, least)
	}
	leases := int(w.cfg.Hour / p.lease)
	if least := p.changes(leases); w.stats.elections < least {
		c.failf("%d elections only, less than %d", w.stats.elections, least)
	}
}

// cost checks that the store gets at most about three operations of each member in a renewal
// interval. It is called for each operation, because an excess may never end.
func (c *check) cost() {
	p := &c.w.plan
	each := 9
	if p.rumors { // each change is read
		each = 14
	}
	if most := 10 + each*int(c.w.cfg.Hour/p.lease)*p.nodes; c.w.stats.ops > most {
		c.failf("%d operations, more than %d", c.w.stats.ops, most)
	}
}

// changes returns how often a new leader is at least needed in so many leases.
func (p *plan) changes(leases int) int {
	switch {
	case p.elders, p.alone(): // for most of the time an older system's candidate may lead, or none
		return 1
	case p.strict, p.recurs(): // at times there is no successor
		return max(1, leases/40)
	case p.yield, p.spam:
		return max(1, leases/10)
	case p.crash:
		return max(1, leases/20)
	}
	return 1
}

// hardship returns the part of the time that all faults of a plan together may cost. The figures
// are above the worst of a million seeds.
func (p *plan) hardship() float64 {
	sum := 0.1
	for _, f := range []struct {
		on   bool
		cost float64
	}{
		{p.crash, 0.22}, {p.cut, 0.22}, {p.erase, 0.2}, {p.pause, 0.15}, {p.suspend, 0.15}, {p.naps(), 0.15}, {p.foreign, 0.15},
		{p.broken, 0.15}, {p.panics, 0.15}, {p.spam, 0.2}, {p.slow, 0.08}, {p.lose, 0.06}, {p.yield, 0.06},
		{p.freeze, 0.05}, {p.rollback, 0.05}, {p.stale, 0.05}, {p.step, 0.05}, {p.fail, 0.04}, {p.withdraws, 0.04},
		{p.slew, 0.03}, {p.mixed, 0.03}, {p.replay, 0.03}, {p.slack() && (p.yield || p.spam), 0.17}, {p.slack(), 0.06}, {p.ranked, 0.06}, {p.nominated, 0.1}, {p.strict, 0.3}, {p.stuck, 0.04},
		{p.fickle, 0.35}, {p.wreck, 0.15}, {p.defaced(), 0.1}, {p.bounds, 0.26}, {p.peers, 0.1}, {p.elders, 0.5}, {p.remakes, 0.35}, {p.loses, 0.2}, {p.promotes, 0.28}, {p.rumors, 0.12},
		{p.farClock, 0.05}, {p.mixed && (p.yield || p.foreign), 0.05},
		{p.rollback && p.mixed, 0.06}, // members wait for one more lease
		{p.alone(), 0.12},
		{p.alone() && (p.promotes || p.loses), 0.26}, // the process that is away has all members
	} {
		if f.on {
			sum += f.cost
		}
	}
	if p.strict && p.fickle { // the named member and the fit one may differ for long
		return 0.985
	}
	if p.recurs() {
		return min(sum, 0.85)
	}
	return min(sum, 0.76)
}
