package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// elder is a candidate of an older system on the same cell. Its records have no term and state no
// bound. It replaces a record that it has seen for a whole lease. Its clocks keep the smallest
// bound, so its wait is long enough. It leads as long as a leader with that bound may.
type elder struct {
	w      *world
	proc   process
	seen   driver.Version
	since  clock.Instant
	held   clock.Instant // when the last applied write was sent
	leads  bool
	writes int
}

const elderName = "elder"

// startElder starts the elder, if this run has one.
func (w *world) startElder() {
	if !w.plan.elders {
		return
	}
	e := &elder{w: w, proc: process{clocks: &machineClocks{}, bound: drift}}
	e.proc.clocks.reading = w.origin()
	w.retune(&e.proc)
	w.elder = e
	w.every(true, 2*time.Minute, func() { w.retune(&e.proc) })
	w.every(true, 8*w.plan.lease, func() { e.proc.cutUntil = w.now + w.extra.span(2*w.plan.lease) })
	w.queue.add(w.extra.span(w.plan.lease), e.look)
}

func (e *elder) now() clock.Instant { return e.proc.clocks.at(e.w.now).Instant }

// holds reports whether the elder may act.
func (e *elder) holds() bool {
	cfg := protocol.Config{Lease: e.w.plan.lease}
	cfg.Promise(drift, protocol.TimerLateness(cfg.Lease), 0)
	return e.leads && cfg.Budget > e.now().LeaderSince(e.held)
}

// look reads the cell, acts on it, and does so again after each poll interval.
func (e *elder) look() {
	w := e.w
	if w.calm {
		return
	}
	w.queue.add(w.now+w.plan.poll*9/10+w.extra.span(w.plan.poll/5), e.look)
	if e.proc.cutUntil > w.now {
		return
	}
	c := w.store.cell
	w.queue.add(w.now+w.plan.latency, func() { e.consider(&c) })
}

func (e *elder) consider(c *protocol.Cell) {
	mine := c.Record.Incarnation == elderName
	if c.Version != e.seen {
		e.seen, e.since = c.Version, e.now()
	}
	e.leads = e.leads && mine
	switch {
	case c.Kind != protocol.Valid || !c.Record.Held():
	case mine && e.holds() && e.w.extra.chance(0.9):
		e.write(c)
	case !mine && e.now().FollowerSince(e.since) >= e.w.plan.lease:
		e.write(c)
	}
}

// write replaces the cell if it is still as it was seen.
func (e *elder) write(c *protocol.Cell) {
	w, sent, prev := e.w, e.now(), c.Version
	w.queue.add(w.now+w.plan.latency, func() {
		if w.calm || w.store.cell.Version != prev {
			return
		}
		e.writes++
		r := record.Record{LeaderID: elderName, Incarnation: elderName, Lease: w.plan.lease, Nonce: "elder " + strconv.Itoa(e.writes)}
		w.tracef(nil, "the elder writes over version %s", prev)
		w.hinderAll()
		w.store.count(&r)
		w.store.place(protocol.Cell{Kind: protocol.Valid, Record: r, Version: w.store.version(&r)})
		e.leads, e.held = true, sent
	})
}

// With rumors the store's pushes are notifications that anybody can send, true or false.

// believed checks that a rumor changes nothing in the view.
func (c *check) believed(n *node, was, is *protocol.Cell, phase protocol.Phase) {
	won := phase != protocol.Leading && n.m.Phase() == protocol.Leading
	if won || was.Version != is.Version || was.Record.Nonce != is.Record.Nonce {
		c.failf("%s takes the rumor of term %d, sequence number %d, as a fact", n.incarnation(), is.Record.Term, is.Record.Seq)
	}
}

// claimsWhatItRead checks that a claim replaces a version that the member has read, where pushes
// are rumors.
func (c *check) claimsWhatItRead(n *node, op *protocol.Op) {
	if c.w.plan.rumors && op.Write && kindOf(&op.Record) == "claim" && op.Prev != n.hasRead {
		c.failf("%s claims over version %q, and has read %q", n.incarnation(), op.Prev, n.hasRead)
	}
}

// gossip spreads a false rumor.
func (w *world) gossip() {
	c := w.falsehood(w.store.cell)
	if w.rumors.chance(0.5) {
		c.Version = driver.Version("forged at " + w.now.String())
	}
	c.Unverified = true
	w.tracef(nil, "a false rumor says version %q, term %d, sequence number %d, released %v",
		c.Version, c.Record.Term, c.Record.Seq, c.Record.Released)
	for _, n := range w.nodes {
		if n.alive && !n.blind {
			n.later(w.plan.latency+w.rumors.span(time.Millisecond), func() { n.receivePush(c) })
		}
	}
}

// falsehood returns a false state that a forger makes from the present one.
func (w *world) falsehood(c protocol.Cell) protocol.Cell {
	r := &c.Record
	r.Seq++
	r.Nonce = "forged at " + w.now.String()
	switch past := w.store.history; w.rumors.rng.IntN(8) {
	case 0, 1: // the holder has renewed
	case 2:
		r.Released = true
	case 3:
		r.Term, r.LeaderID, r.Incarnation, r.Released = r.Term+1<<w.rumors.rng.IntN(40), "forged", "forged", false
	case 4:
		return malformed
	case 5:
		return absent
	case 6:
		r.Lease *= 10
	default:
		if len(past) > 0 {
			return past[w.rumors.rng.IntN(len(past))].cell
		}
	}
	return c
}

// receivePush gives the machine a push, and checks that it is only a hint (L13): it ends no lease,
// and takes no member back to an older state. A peer's push counts only as far as the store has
// confirmed it.
func (n *node) receivePush(c protocol.Cell) {
	held, was := n.m.Holds(n.now()), n.shown()
	phase := n.m.Phase()
	n.m.Seen(n.now(), c)
	n.attempts.applied(c.Record.Nonce)
	is, why := n.shown(), n.m.Cause()
	if c.Unverified {
		n.w.check.believed(n, &was, &is, phase)
	}
	if held && !n.m.Holds(n.now()) && !errors.Is(why, protocol.ErrExpired) {
		n.w.check.failf("%s loses term %d by a push alone: %v", n.incarnation(), n.m.Term(), why)
	}
	n.w.check.pushed(n, &was, &is)
	n.asks(&is, false)
	n.pump()
}

// pushed compares the view before a push and after it.
func (c *check) pushed(n *node, was, is *protocol.Cell) {
	before, after := &was.Record, &is.Record
	back := after.Term < before.Term || after.Term == before.Term && after.Seq < before.Seq
	if back && was.Kind == protocol.Valid && is.Kind == protocol.Valid {
		c.failf("%s is taken back by a push from term %d, sequence number %d, to term %d, sequence number %d",
			n.incarnation(), before.Term, before.Seq, after.Term, after.Seq)
	}
	told := after.Nonce != before.Nonce && after.Incarnation != n.incarnation()
	if c.w.plan.peers && told && (after.Lease != before.Lease || after.Term != before.Term) {
		c.failf("%s believes a peer that term %d has a lease of %v, though it has read of term %d and %v",
			n.incarnation(), after.Term, after.Lease, before.Term, before.Lease)
	}
}
