package main

import (
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// The checks of each write against the record that it replaces.

// write checks a record that goes into the store.
func (c *check) write(old *protocol.Cell, r *record.Record) {
	switch {
	case old.Kind == protocol.Foreign:
		c.failf("foreign bytes overwritten by %s", r.Incarnation)
	case r.Held() && r.Seq == 1:
		c.claimed(old, r)
	case r.Held():
		c.renewed(old, r)
	case r.Released:
		c.released(old, r)
	}
}

// claimMayReturn reports whether a claim over an absence may be delivered there again, after its
// sender has seen later states.
func (c *check) claimMayReturn() bool { return c.w.plan.rollback && c.w.plan.stale }

func (c *check) claimed(old *protocol.Cell, r *record.Record) {
	n := c.w.find(r.Incarnation)
	never := old.Pristine && (n == nil || n.seen == 0 || c.claimMayReturn())
	if old.Kind == protocol.Absent && c.w.now >= c.fragile && !never {
		c.failf("absence claimed by %s", r.Incarnation)
	}
	// Later claims may have been lost since the sender read.
	if r.Term <= c.highest && !c.unordered(n) {
		c.failf("term %d claimed after term %d", r.Term, c.highest)
	}
	if r.Request != nil {
		c.failf("term %d begins with a request", r.Term)
	}
	if n != nil && n.alive {
		c.claimNeeded(n, old, r)
	}
	c.waited(n, old, r)
	c.own(r.Term, r.Incarnation)
	c.alone(n, r.Term)
	c.claims[tenure{r.Incarnation, r.Term}] = c.w.now
}

// sent checks each operation when it is sent. No member may forget a term that it has seen.
func (c *check) sent(n *node, op *protocol.Op) {
	r := &op.Record
	c.deferred(n, op)
	c.overstays(n)
	c.unfit(n, op)
	c.outstays(n)
	c.named(n, op)
	c.intrudes(n, op)
	c.attempted(n, op)
	if vacant := op.Write && r.LeaderID == ""; vacant && r.Term < n.seen || op.Write && r.Held() && r.Seq == 1 && r.Term <= n.seen {
		c.failf("%s sends a %s of term %d and has seen term %d", n.incarnation(), kindOf(r), r.Term, n.seen)
	}
}

// claimNeeded checks that the member still wants to lead when it claims, and that an earlier claim
// of it did not just succeed.
func (c *check) claimNeeded(n *node, old *protocol.Cell, r *record.Record) {
	if c.unhindered(n) && n.m.Phase() == protocol.Idle {
		c.failf("%s withdrew and claimed term %d after that", r.Incarnation, r.Term)
	}
	first, known := c.claims[tenure{r.Incarnation, old.Record.Term}]
	again := known && first > max(n.withdrew, n.fitness.since) && old.Record.Held() && old.Record.Incarnation == r.Incarnation && n.term != old.Record.Term
	if again && c.w.now-first < c.w.plan.lease/4 && c.w.plan.timely() && !c.w.plan.rollback && !c.w.plan.recurs() && !c.excused(n) {
		c.failf("%s claims term %d right after it claimed term %d", r.Incarnation, r.Term, old.Record.Term)
	}
}

// renewed checks that a renewal replaces only the holder's own record of the same term.
func (c *check) renewed(old *protocol.Cell, r *record.Record) {
	was := &old.Record
	if c.w.store.life.number > 0 {
		return // the version may recur while the lease is valid, or before a late renewal arrives
	}
	if old.Kind != protocol.Valid || !was.Held() || was.Incarnation != r.Incarnation || was.Term != r.Term {
		c.failf("term %d of %s renewed over term %d of %q", r.Term, r.Incarnation, was.Term, was.Incarnation)
	}
}

// released checks that the work of the member that releases has stopped, and that no other member
// leads, because any member may claim now.
func (c *check) released(old *protocol.Cell, r *record.Record) {
	n := c.w.find(r.Incarnation)
	if n != nil && n.alive && (n.inside && n.term == r.Term || n.leftover == r.Term && r.Term > 0) {
		c.failf("term %d released while %s works", r.Term, r.Incarnation)
	}
	if old.Kind == protocol.Absent && c.excused(n) {
		// It releases a term that it wrongly believes to hold, so that every member may claim.
		c.amnesty = c.w.now + c.w.longest()
	}
	// If the old record is another member's, this release replaces what a pending claim expects
	// (L16).
	was := &old.Record
	if r.Term < was.Term || r.Term == was.Term && was.Held() && was.Incarnation != r.Incarnation {
		c.failf("term %d of %s released over term %d of %s", r.Term, r.Incarnation, was.Term, was.Incarnation)
	}
	c.alone(n, r.Term)
}

// intrudes checks that no member sends a release of its term over a later record of another that it
// has read.
func (c *check) intrudes(n *node, op *protocol.Op) {
	if !op.Write || !op.Record.Released {
		return
	}
	r, cell := &op.Record, n.shown()
	was := &cell.Record
	if cell.Version == op.Prev && was.Held() && was.Incarnation != r.Incarnation && was.Term >= r.Term {
		c.failf("term %d of %s released over term %d of %s", r.Term, r.Incarnation, was.Term, was.Incarnation)
	}
}

// leavesAbsence checks that a leader whose record vanished puts a release there, so that no member
// waits (L11).
func (c *check) leavesAbsence(n *node) {
	cell := &c.w.store.cell
	there := n.vanished != "" && cell.Kind == protocol.Absent && cell.Version == n.vanished
	if there && n.smooth(n.vanishedAt) {
		c.failf("%s leaves the absence that ended term %d to be waited out", n.incarnation(), n.m.Term())
	}
}

// replaced records the terms whose record another writer has replaced.
func (c *check) replaced(old, by *protocol.Cell) {
	was, is := &old.Record, &by.Record
	if was.Held() && (is.Incarnation != was.Incarnation || is.Term != was.Term) {
		c.usurped[tenure{was.Incarnation, was.Term}] = true
	}
}
