package main

import (
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
)

// These checks watch the operations of a member: it sends one at a time, and not too many. It
// recognizes each of its own writes.

// sentWrite is a write that a member sent.
type sentWrite struct {
	nonce  string
	kind   string
	term   uint64
	at     time.Duration
	budget time.Duration
}

// flight is an operation that waits for its answer.
type flight struct {
	op      protocol.Op
	at      time.Duration
	on      bool
	release time.Duration // how long the member waits for the answer during a release
}

// attempts are the latest operations of one life of a member.
type attempts struct {
	flight       flight
	writes       []sentWrite
	asked        time.Duration // when the last operation was sent
	campaignedAt time.Duration // when it last began to campaign
	unsure       bool          // the last write was not answered
	from         time.Duration // when the count of operations began
	count        int
}

// note records an operation that is being sent.
func (a *attempts) note(n *node, op *protocol.Op) {
	now := n.w.now
	a.flight, a.asked = flight{*op, now, true, n.cfg.ReleaseWithin() / 2}, now
	if now-a.from > n.cfg.Lease {
		a.from, a.count = now, 0
	}
	a.count++
	if !op.Write {
		return
	}
	a.unsure = true
	const keep = 8
	if len(a.writes) == keep {
		a.writes = append(a.writes[:0], a.writes[1:]...)
	}
	r := &op.Record
	a.writes = append(a.writes, sentWrite{r.Nonce, kindOf(r), r.Term, now, n.cfg.Budget})
}

// answered records that an operation was answered.
func (a *attempts) answered(op *protocol.Op, out protocol.Outcome) {
	if a.flight.op.ID == op.ID {
		a.flight.on = false
		a.unsure = a.unsure && !(op.Write && out == protocol.Applied)
	}
}

// attempted checks that a member has one operation under way at a time (L7), and leaves time
// between operations (L8).
func (c *check) attempted(n *node, op *protocol.Op) {
	a := &n.attempts
	limit := a.flight.op.Timeout
	if n.m.Phase() == protocol.Releasing {
		limit = min(limit, a.flight.release, n.cfg.ReleaseWithin()/2)
	}
	waits := a.flight.on && c.w.now-a.flight.at < limit*7/10 && n.proc.stillUntil < a.flight.at
	if waits && !c.w.plan.step {
		c.failf("%s sends %s while it waits for the answer to %s",
			n.incarnation(), describe(*op), describe(a.flight.op))
	}
	a.note(n, op)
	if a.count > maxOperations {
		c.failf("%s sends %d operations within a lease", n.incarnation(), a.count)
	}
}

// maxOperations is more than a member ever needs to send within its lease. The most seen are 61,
// when the record was deleted a dozen times in a lease of 1 s.
const maxOperations = 90

// neglected checks that a leader tried to renew its lease (L8), if its last write was confirmed and
// its lease expired afterwards.
func (c *check) neglected(n *node, term uint64) {
	a := &n.attempts
	if a.flight.on || a.unsure || n.proc.stillUntil >= a.asked || c.w.plan.step || n.excused() {
		return
	}
	if silent := c.w.now - a.asked; silent > n.sent.Record.Lease*6/10 {
		c.failf("%s lets term %d run out and has not asked the store for %v",
			n.incarnation(), term, silent)
	}
}

// before is a member's state before an answer, for comparison.
type before struct {
	phase protocol.Phase
	holds bool
}

func (n *node) before() before { return before{n.m.Phase(), n.m.Holds(n.now())} }

// chained reports whether a version never returns, and is never shown again, once it was replaced.
func (p *plan) chained() bool {
	return !(p.stale || p.rollback || p.recurs() || p.freeze || p.step)
}

// recognized checks that a write of the member that a read shows counts from its send (L7), unless
// a later pending write has an earlier deadline.
func (c *check) recognized(n *node, was before, shown *protocol.Cell) {
	a := &n.attempts
	found, left := a.good(shown.Record.Nonce, c.w.now)
	if !c.w.plan.chained() || shown.Kind != protocol.Valid || left <= 0 {
		return
	}
	switch {
	case found.kind == "renewal" && was.holds:
		if real, _ := n.m.Remaining(n.now(), found.term); real < left {
			c.failf("%s reads its own renewal of term %d, which is good for %v, and relies on %v",
				n.incarnation(), found.term, left, real)
		}
	case found.kind == "claim" && was.phase == protocol.Candidate:
		wanted := found.at >= max(a.campaignedAt, n.fitness.since)
		if wanted && n.m.Phase() == protocol.Candidate {
			c.failf("%s reads its own claim of term %d, and does not recognize it",
				n.incarnation(), found.term)
		}
	}
}

// good finds a write of the member by its nonce, and for how long the member may rely on it by any
// clock. It finds nothing if none was sent. The time is 0 or less if it is over.
func (a *attempts) good(nonce string, now time.Duration) (found sentWrite, left time.Duration) {
	for _, o := range a.writes {
		rest := o.budget - (now-o.at)*12/10
		switch {
		case o.nonce == nonce:
			found, left = o, rest
		case found.nonce != "" && o.term == found.term:
			left = min(left, rest)
		}
	}
	return found, left
}

// timely checks that a claim wins nothing if it is found applied after its deadline (L4).
func (c *check) timely(n *node, term uint64) {
	var last sentWrite
	for _, o := range n.attempts.writes {
		renewed := o.nonce == c.w.store.cell.Record.Nonce // in the grace, and the store has it
		if o.term == term && (o.kind == "claim" || o.kind == "renewal" && renewed) {
			last = o
		}
	}
	age := c.w.now - last.at
	if last.kind != "" && !c.excused(n) && age*8/10 > last.budget+c.w.plan.grace {
		c.failf("%s wins term %d by a claim that it sent %v ago, and that was good for %v",
			n.incarnation(), term, age, last.budget)
	}
}

// reclaims checks that a candidate replaces its own record at once: its term is over, and its work
// has stopped (L4).
func (c *check) reclaims(n *node, was before) {
	a, r := &n.attempts, n.shown().Record
	seeks := was.phase == protocol.Candidate && n.m.Phase() == protocol.Candidate
	acts := a.flight.on || n.sentAt >= a.campaignedAt
	if seeks && !acts && r.Held() && r.Incarnation == n.incarnation() && c.w.plan.chained() && !c.w.plan.farClock {
		c.failf("%s waits for its own record of term %d to run out", n.incarnation(), r.Term)
	}
}
