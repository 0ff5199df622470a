package main

import (
	"slices"

	"github.com/tenure-go/tenure/internal/protocol"
)

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
