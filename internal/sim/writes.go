package main

import (
	"slices"
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// The checks of each write against the record that it replaces.

// write checks a record that goes into the store.
func (c *check) write(old *protocol.Cell, r *record.Record) {
	c.notices(old, r)
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
	wanted := first > max(n.withdrew, n.fitness.since, n.nomination.since)
	mine := old.Record.Held() && old.Record.Incarnation == r.Incarnation
	again := known && wanted && mine && n.term != old.Record.Term
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

// leavesAbsence checks that a leader whose record vanished puts a release there if its work stops
// before its deadline, so that no member waits (L11). After failures and a false rumor, the read
// before the release may be too late.
func (c *check) leavesAbsence(n *node) {
	cell := &c.w.store.cell
	there := n.vanished != "" && cell.Kind == protocol.Absent && cell.Version == n.vanished
	before := c.w.now < n.due-c.w.plan.lease/4 // its clocks may differ from the true time
	if there && before && !c.w.plan.rumors && n.smooth(n.vanishedAt) {
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

// These checks watch the operations of a member: it sends one at a time, and not too many. It
// recognizes each of its own writes.

// sentWrite is a write that a member sent.
type sentWrite struct {
	nonce  string
	kind   string
	term   uint64
	at     time.Duration
	budget time.Duration
	done   bool // the store has said that it applied it
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
	a.writes = append(a.writes, sentWrite{
		nonce: r.Nonce, kind: kindOf(r), term: r.Term, at: now, budget: n.cfg.Budget,
	})
}

// answered records that an operation was answered.
func (a *attempts) answered(op *protocol.Op, out protocol.Outcome) {
	if a.flight.op.ID == op.ID {
		a.flight.on = false
		a.unsure = a.unsure && !(op.Write && out == protocol.Applied)
	}
	if op.Write && out == protocol.Applied {
		a.applied(op.Record.Nonce)
	}
}

// applied records that the member knows of a write that it was applied.
func (a *attempts) applied(nonce string) {
	for i := range a.writes {
		o := &a.writes[i]
		o.done = o.done || o.nonce == nonce
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
		// In the grace: the store has it, or had it before a standby took over.
		renewed := o.done || o.nonce == c.w.store.cell.Record.Nonce
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

// A leader's successor is named by a call in its process, or by a request in the store. The
// successor that was named last counts. A request counts once.

// wishes are the named successors of a term.
type wishes struct {
	term  uint64
	names []string
	plain bool // one of the names reached the leader without an obstacle
	// offers are names in offers. A leader that leaves for another reason takes such a name, too.
	offers []string
}

// wish records that n has just been asked to hand over to a successor.
func (n *node) wish(to string, plain bool) {
	if n.m.Phase() != protocol.Leading {
		return
	}
	w := n.wishesOf(n.m.Term())
	w.names, w.plain = append(w.names, to), w.plain || plain
}

// wishesOf returns the wishes of a term, and forgets those of others.
func (n *node) wishesOf(term uint64) *wishes {
	if n.wishes.term != term {
		n.wishes = wishes{term: term}
	}
	return &n.wishes
}

// asks records the request in a record that n is shown. A leader that waits for an answer may miss
// a request that is pushed in the meantime.
func (n *node) asks(c *protocol.Cell, plain bool) {
	r := &c.Record
	own := r.Incarnation == n.incarnation() && r.Term == n.m.Term()
	switch q := r.Request; {
	case !own || q == nil || q.Term != r.Term:
	case q.Offer && n.leaving != r.Term:
		w := n.wishesOf(r.Term)
		w.offers = append(w.offers, q.To)
	default:
		n.wish(q.To, plain)
	}
}

// named checks that a release names one of the requested successors, if there are any (H1).
func (c *check) named(n *node, op *protocol.Op) {
	r, w := &op.Record, &n.wishes
	released := op.Write && r.Released && r.Term == w.term && r.Term == n.term
	if released && w.plain && !slices.Contains(w.names, r.Successor) && !slices.Contains(w.offers, r.Successor) {
		c.failf("%s releases term %d for %q, and was told of %q",
			n.incarnation(), r.Term, r.Successor, w.names)
	}
}
