package main

import (
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

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
