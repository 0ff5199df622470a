package main

import "time"

// What keeps a member from its store is known to the world, so that more can be asked of a member
// that nothing keeps.

// hinder says that something is in the way between n and the store until the given time.
func (n *node) hinder(until time.Duration) { n.hinderedUntil = max(n.hinderedUntil, until) }

// hinderAll says so of all members.
func (w *world) hinderAll() {
	for _, n := range w.nodes {
		n.hinder(w.now)
	}
}

// smooth: nothing has been in the way between n and the store since then, and n was not stopped.
func (n *node) smooth(since time.Duration) bool {
	last := max(n.hinderedUntil, n.proc.cutUntil, n.proc.stillUntil, n.w.outageUntil)
	return last < since && !n.excused()
}

// unhindered: nothing has kept the member from its store for a while.
func (c *check) unhindered(n *node) bool {
	p := &c.w.plan
	return !p.cramped() && p.chained() && n.smooth(c.w.now-c.w.longest())
}
