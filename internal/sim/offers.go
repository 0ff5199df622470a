package main

import (
	"errors"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// An operator offers the lead to members, and to names that nobody has (H3).

// nobodyHas is a name of no member.
const nobodyHas = "gone"

// offer offers the lead to a member, or to a name that nobody has.
func (w *world) offer() {
	to := nobodyHas
	if w.offers.chance(0.7) {
		to = w.nodes[w.offers.rng.IntN(len(w.nodes))].name
	}
	w.store.offer(to)
}

func (s *store) offer(to string) { s.ask(record.Request{To: to, By: "operator", Offer: true}) }

// leaves checks that a leader leaves for a hand-over only if that was asked for without an offer,
// or the offer was accepted.
func (c *check) leaves(n *node, t protocol.Transition) {
	w := &n.wishes
	if errors.Is(t.Cause, protocol.ErrHandOver) && (w.term != t.Term || len(w.names) == 0) {
		c.failf("%s leaves term %d for an offer that nobody has accepted", n.incarnation(), t.Term)
	}
}

// accepts checks that a member accepts only what it is offered, and only if it may lead.
func (c *check) accepts(n *node, q *record.Request) {
	switch {
	case q.To != n.name:
		c.failf("%s accepts an offer to %q", n.incarnation(), q.To)
	case n.fitness.heard:
		c.failf("%s accepts an offer, and is not eligible", n.incarnation())
	case c.w.plan.strict && !n.nomination.heard:
		c.failf("%s accepts an offer, and is not the nominee", n.incarnation())
	}
}

// refused checks that an offer to nobody has changed nothing, and is gone.
func (w *world) refused(from *node, term uint64) {
	q := w.store.cell.Record.Request
	switch {
	case w.leading() != from || from.term != term:
		w.check.failf("%s does not lead term %d any more, and nobody has accepted its offer", from.incarnation(), term)
	case q != nil:
		w.check.failf("%s still offers the lead to %q", from.incarnation(), q.To)
	}
}
