package main

import "time"

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
	if most := 10 + 9*int(c.w.cfg.Hour/p.lease)*p.nodes; c.w.stats.ops > most {
		c.failf("%d operations, more than %d", c.w.stats.ops, most)
	}
}

// changes returns how often a new leader is at least needed in so many leases.
func (p *plan) changes(leases int) int {
	switch {
	case p.elders: // the older system's candidate may lead for most of the time
		return 1
	case p.strict, p.recurs(), p.alone() && p.naps(): // at times there is no successor
		return max(1, leases/40)
	case p.yield, p.spam:
		return max(1, leases/8)
	case p.crash:
		return max(1, leases/20)
	}
	return 1
}

// hardship returns the part of the time that all faults of a plan together may cost. The figures
// are somewhat above the worst of 12,000 seeds.
func (p *plan) hardship() float64 {
	sum := 0.06
	for _, f := range []struct {
		on   bool
		cost float64
	}{
		{p.crash, 0.22}, {p.cut, 0.22}, {p.erase, 0.2}, {p.pause, 0.15}, {p.suspend, 0.15}, {p.naps(), 0.15}, {p.foreign, 0.15},
		{p.broken, 0.15}, {p.panics, 0.15}, {p.spam, 0.15}, {p.slow, 0.08}, {p.lose, 0.06}, {p.yield, 0.06},
		{p.freeze, 0.05}, {p.rollback, 0.05}, {p.stale, 0.05}, {p.step, 0.05}, {p.fail, 0.04}, {p.withdraws, 0.04},
		{p.slew, 0.03}, {p.mixed, 0.03}, {p.replay, 0.03}, {p.slack() && (p.yield || p.spam), 0.17}, {p.slack(), 0.06}, {p.ranked, 0.06}, {p.nominated, 0.1}, {p.strict, 0.3}, {p.stuck, 0.04},
		{p.fickle, 0.35}, {p.wreck, 0.15}, {p.defaced(), 0.1}, {p.bounds, 0.26}, {p.peers, 0.1}, {p.elders, 0.5}, {p.remakes, 0.35}, {p.loses, 0.2}, {p.promotes, 0.25}, {p.rumors, 0.12},
		{p.alone(), 0.12},
		{p.alone() && (p.promotes || p.loses), 0.12}, // the process that is away has all members
	} {
		if f.on {
			sum += f.cost
		}
	}
	if p.strict && p.fickle { // the named member and the fit one may differ for long
		return 0.97
	}
	if p.recurs() {
		return min(sum, 0.85)
	}
	return min(sum, 0.76)
}
