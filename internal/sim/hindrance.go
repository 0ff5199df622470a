package main

import "time"

// The world knows the obstacles between a member and its store, so that the checks can demand more
// of a member without obstacles.

// hinder records an obstacle between n and the store until the given time.
func (n *node) hinder(until time.Duration) { n.hinderedUntil = max(n.hinderedUntil, until) }

// hinderAll records an obstacle for all members, now.
func (w *world) hinderAll() {
	for _, n := range w.nodes {
		n.hinder(w.now)
	}
}

// smooth reports whether, since the given time, n had no obstacle on its way to the store and was
// not stopped.
func (n *node) smooth(since time.Duration) bool {
	last := max(n.hinderedUntil, n.proc.cutUntil, n.proc.stillUntil, n.w.outageUntil)
	return last < since && !n.excused()
}

// unhindered reports whether nothing has kept the member from its store for a while, and each state
// there is believed at once.
func (c *check) unhindered(n *node) bool {
	p := &c.w.plan
	return !p.cramped() && p.chained() && !p.farClock && n.smooth(c.w.now-c.w.longest())
}
