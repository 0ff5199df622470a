package main

import (
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

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
