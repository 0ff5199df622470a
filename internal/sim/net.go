package main

import (
	"errors"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// send carries an operation to the store and its answer back, with all possible faults on the way.
func (n *node) send(op protocol.Op) {
	w := n.w
	w.stats.ops++
	n.count(op.Write)
	if n.proc.silent {
		op.Record.Drift = 0
	}
	w.check.sent(n, &op)
	if op.Write {
		n.sent, n.sentAt = op, w.now
	}
	w.check.cost()
	w.check.claimsWhatItRead(n, &op)
	often := 0.02
	if kindOf(&op.Record) == "claim" {
		often = 0.2 // a pending claim leads to the most cases
	}
	if w.plan.withdraws && op.Write && !w.calm && w.chance(often) {
		w.queue.add(w.now+w.span(3*w.plan.latency), func() { w.withdraw(n) })
	}
	there, lost := w.hop(n)
	if lost || w.losing(op) {
		n.hinder(w.now)
		w.tracef(n, "sends %s, which is lost", describe(op))
		if w.plan.fail && !w.calm {
			n.refuse(op)
		}
		return
	}
	switch {
	case w.calm:
	case op.Write && w.plan.replay && w.chance(0.1):
		n.replay(op, there)
		return
	case op.Write && w.plan.fail && w.chance(0.05):
		n.fail(op, there+w.span(w.plan.lease/2))
		return
	}
	life, based := n.lives, n.basedOn(op)
	w.queue.add(w.now+there, func() { n.deliver(life, based, op) })
}

// basedOn returns when the store had the state that the sender of op expects: when it was read or
// written, or now, for one that was pushed. Nothing excuses a claim over a state that is not recent
// (L3a).
func (n *node) basedOn(op protocol.Op) time.Duration {
	if !op.Write {
		return n.w.now
	}
	recent := func(at time.Duration) bool { return n.w.now-at <= n.cfg.Attempt()*5/4 }
	based := time.Duration(-1)
	if op.Prev == n.hasRead && (recent(n.readAt) || kindOf(&op.Record) != "claim") {
		based = n.readAt
	}
	if op.Prev == n.wrote && recent(n.wroteAt) {
		based = max(based, n.wroteAt)
	}
	if based < 0 {
		return n.w.now
	}
	return based
}

// deliver is the moment in which the store decides.
func (n *node) deliver(life int, based time.Duration, op protocol.Op) {
	if op.Write {
		v, out := n.w.store.late(based, op.Prev, op.Record)
		if n.w.verbose {
			n.w.tracef(n, "%s: %v, version %s", describe(op), out == protocol.Applied, v)
		}
		n.noteWritten(v, out, op.Record.Term)
		if n.sever(op, out) {
			return
		}
		n.strained(out == protocol.Applied)
		n.answer(life, op, protocol.Cell{}, v, out)
		return
	}
	c := n.w.store.read()
	n.readAt = n.w.now
	if c.Version != n.w.store.cell.Version {
		n.hinder(n.w.now)
	}
	if c.Record.Released {
		n.w.pounce(n, 0.1)
	}
	n.w.tracef(n, "reads version %q term %d of %s", c.Version, c.Record.Term, c.Record.Incarnation)
	n.answer(life, op, c, "", protocol.Applied)
}

// noteWritten notes a write that was applied. If it took the place of a higher term, by a version
// that recurred, the lower term goes on.
func (n *node) noteWritten(v driver.Version, out protocol.Outcome, term uint64) {
	if out != protocol.Applied {
		return
	}
	n.wrote, n.wroteAt = v, n.w.now
	if n.w.store.strayed && term < n.w.check.highest {
		n.below = term
	}
}

// sever loses the answer to a renewal, and cuts the member off from the store for some time.
func (n *node) sever(op protocol.Op, out protocol.Outcome) bool {
	if !n.severing || out != protocol.Applied || kindOf(&op.Record) != "renewal" || n.w.calm {
		return false
	}
	n.severing = false
	n.w.cut(n)
	return true
}

// replay delivers a request twice: at once with a second answer, or a second time much later.
func (n *node) replay(op protocol.Op, there time.Duration) {
	w, life, sent := n.w, n.lives, n.w.now
	if w.chance(0.5) {
		w.queue.add(w.now+there, func() {
			n.hinder(w.now)
			w.store.late(sent, op.Prev, op.Record)
			n.deliver(life, sent, op)
		})
		return
	}
	n.hinder(w.now)
	w.queue.add(w.now+there, func() { n.deliver(life, sent, op) })
	if op.Record.LeaderID == "" && op.Prev != "" {
		// This write replaces another of the kind. If both were redelivered in order, no member
		// could detect it (docs/guarantees.md).
		return
	}
	w.queue.add(w.now+there+w.span(2*w.plan.lease), func() { w.store.late(sent, op.Prev, op.Record) })
}

// fail answers with an error while the request is still on its way.
func (n *node) fail(op protocol.Op, there time.Duration) {
	n.w.tracef(n, "sends %s, and hears of an error at once", describe(op))
	n.refuse(op)
	sent := n.w.now
	n.w.queue.add(n.w.now+there, func() { n.w.store.late(sent, op.Prev, op.Record) })
}

// refuse gives an error that comes at once and carries no information.
func (n *node) refuse(op protocol.Op) {
	n.hinder(n.w.now + n.w.plan.latency)
	n.later(n.w.plan.latency, func() {
		n.attempts.answered(&op, protocol.Unknown)
		if op.Write {
			n.m.WriteDone(n.now(), op.ID, "", protocol.Unknown, errFault)
		} else {
			n.m.ReadDone(n.now(), op.ID, protocol.Cell{}, protocol.Unknown, errFault)
		}
		n.pump()
	})
}

// answer sends an answer to the life of the member that sent op. A later life may use the same
// numbers for its operations.
func (n *node) answer(life int, op protocol.Op, c protocol.Cell, v driver.Version, out protocol.Outcome) {
	back, lost := n.w.hop(n)
	won := out == protocol.Applied && op.Write && kindOf(&op.Record) == "claim"
	if lost || won && n.w.plan.lose && !n.w.calm && n.w.chance(0.2) {
		n.hinder(n.w.now)
		return
	}
	if n.w.plan.fail && !n.w.calm && n.w.chance(0.05) {
		out = protocol.Unknown
		n.hinder(n.w.now + back)
	}
	if n.w.plan.slow && !op.Write && !n.w.calm && n.w.chance(0.1) {
		back += n.w.span(n.w.plan.lease / 3)
		n.hinder(n.w.now + back)
	}
	n.w.queue.add(n.w.now+back, func() { n.run(life, func() { n.takeAnswer(op, c, v, out) }) })
}

func (n *node) takeAnswer(op protocol.Op, c protocol.Cell, v driver.Version, out protocol.Outcome) {
	n.attempts.answered(&op, out)
	if op.Write {
		n.m.WriteDone(n.now(), op.ID, v, out, problem(out))
		n.pump()
		return
	}
	n.read(op, c, out)
}

// read gives the machine the answer to a read. The machine ignores an answer that comes too late.
func (n *node) read(op protocol.Op, c protocol.Cell, out protocol.Outcome) {
	was := n.before()
	n.m.ReadDone(n.now(), op.ID, c, out, problem(out))
	shown := n.shown()
	if out != protocol.Applied || shown.Version != c.Version || shown.Record.Nonce != c.Record.Nonce {
		n.pump()
		return
	}
	n.noteShown(&c)
	n.hasRead = c.Version
	heard, _ := n.m.Heard()
	now := heard.Instant == n.now().Instant
	n.asks(&c, n.working && now)
	if now {
		n.w.check.recognized(n, was, &c)
	}
	n.pump()
	if now {
		n.w.check.reclaims(n, was)
	}
}

var errFault = errors.New("the store did not say")

func problem(out protocol.Outcome) error {
	if out == protocol.Unknown {
		return errFault
	}
	return nil
}

// push sends a new state to each watcher. It may arrive late, twice, or never.
func (w *world) push(c protocol.Cell) {
	if !w.plan.watch {
		return
	}
	for _, n := range w.nodes {
		w.pushTo(n, c)
		if w.plan.replay && !w.calm && w.chance(0.05) {
			w.pushTo(n, c)
		}
	}
}

func (w *world) pushTo(n *node, c protocol.Cell) {
	if !n.alive || n.blind || w.plan.peers && !n.follows(&c) {
		return
	}
	if c.Record.Released {
		w.pounce(n, 0.2)
	}
	if w.plan.blank {
		c.Era = 0
	}
	c.Unverified = w.plan.rumors
	d, lost := w.hop(n)
	if lost {
		return
	}
	if w.plan.slow && !w.calm {
		if late := w.straggle(&c); late > 0 {
			d += late
			n.hinder(w.now + d)
		}
	}
	process, life := n.processes, n.lives
	w.queue.add(w.now+d, func() {
		if n.processes != process || w.plan.peers && n.lives != life { // a peer has no shared feed
			return
		}
		n.later(w.backlog(n), func() {
			if !c.Unverified {
				n.noteShown(&c)
			}
			n.receivePush(c)
		})
	})
}

// backlog returns how long a push waits for a process that is stopped: until it continues, and
// sometimes a little longer, since answers may overtake pushes that wait in buffers.
func (w *world) backlog(n *node) time.Duration {
	if n.proc.stillUntil <= w.now || w.calm || w.chance(0.7) {
		return 0
	}
	return n.proc.stillUntil - w.now + w.span(w.plan.renew)
}

// straggle returns how much longer a push takes than an answer. The push of a deletion sometimes
// comes after other members have led.
func (w *world) straggle(c *protocol.Cell) time.Duration {
	switch {
	case c.Kind == protocol.Absent && w.chance(0.3):
		return w.plan.lease + w.span(w.plan.lease)
	case w.chance(0.2):
		return w.span(w.plan.lease / 4)
	}
	return 0
}

// hop returns how long a message between a member and the store takes, and whether it is lost.
func (w *world) hop(n *node) (time.Duration, bool) {
	d := w.plan.latency/2 + w.span(w.plan.latency)
	if w.calm {
		return d, false
	}
	if n.proc.cutUntil > w.now || w.outageUntil > w.now {
		n.hinder(w.now)
		return 0, !w.plan.slow || w.chance(0.7) // a request may also come through much later
	}
	if w.plan.lose && w.chance(0.05) {
		n.hinder(w.now)
		return 0, true
	}
	if w.plan.slow && w.chance(0.05) {
		d += w.span(w.pick(w.plan.lease/4, w.plan.lease*3/2))
		n.hinder(w.now + d)
	}
	return d, false
}

// count counts operations for the budget in the calm at the end.
func (n *node) count(write bool) {
	if !n.w.settled {
		return
	}
	if write {
		n.w.stats.calmWrites++
	} else {
		n.w.stats.calmReads++
	}
}

// flicker ends a member's watch for a while, as when its connection breaks, and begins it again.
// Changes in between are not pushed. The watch may end while an operation of the member is in
// flight.
func (w *world) flicker(n *node) {
	if n.blind {
		return
	}
	n.later(0, func() {
		if w.calm {
			return
		}
		n.setWatching(false)
		n.later(w.span(w.plan.lease), func() { n.setWatching(true) })
	})
}

// watchAll begins all watches again, for the calm.
func (w *world) watchAll() {
	for _, n := range w.nodes {
		if n.alive {
			n.setWatching(true)
		}
	}
}

func (n *node) setWatching(on bool) {
	if n.blind == !on {
		return
	}
	n.blind = !on
	n.w.tracef(n, "watches: %v", on)
	n.m.Watching(on)
	n.pump()
}

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

// With peers the leader itself pushes its writes. It proves to its followers that it is the holder
// of the record that they have read. But the store may never have had the pushed records.

// follows reports whether n has read that the holder of c leads, and so receives its pushes.
func (n *node) follows(c *protocol.Cell) bool {
	shown, _ := n.m.InView()
	return shown.Kind == protocol.Valid && shown.Record.Incarnation == c.Record.Incarnation && shown.Record.Term == c.Record.Term
}

// forge makes the leader push a record that the store does not show: with a lease of an hour, or a
// term far above.
func (w *world) forge() {
	c := w.store.cell
	if c.Kind != protocol.Valid || !c.Record.Held() {
		return
	}
	c.Version = "forged"
	c.Record.Seq++
	c.Record.Nonce = "forged at " + w.now.String()
	lies := w.extra.rng.IntN(3)
	if lies != 0 {
		c.Record.Lease = record.MaxLease
	}
	if lies != 1 {
		c.Record.Term += 1 << 39 // a credible term
	}
	w.tracef(nil, "the leader pushes term %d and a lease of %v", c.Record.Term, c.Record.Lease)
	for _, n := range w.nodes {
		if n.alive && n.follows(&w.store.cell) && n.incarnation() != c.Record.Incarnation {
			n.later(w.plan.latency+w.extra.span(time.Millisecond), func() {
				n.receivePush(c)
			})
		}
	}
}
