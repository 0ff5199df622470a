package main

import (
	"slices"

	"github.com/tenure-go/tenure/internal/protocol"
)

// Who shall follow a leader is said in its own process, or by a request in the store. The last word
// counts, and a request once.

// wishes are who shall follow after a term.
type wishes struct {
	term  uint64
	names []string
	plain bool // one of them was said when nothing kept the leader from hearing it
}

// wish takes down that n has just been told who shall follow it.
func (n *node) wish(to string, plain bool) {
	if n.m.Phase() != protocol.Leading {
		return
	}
	if w := &n.wishes; w.term != n.m.Term() {
		*w = wishes{term: n.m.Term()}
	}
	n.wishes.names, n.wishes.plain = append(n.wishes.names, to), n.wishes.plain || plain
}

// asks takes down the request in a record that n is shown. A leader that waits for an answer may
// not come to a request that is pushed meanwhile.
func (n *node) asks(c *protocol.Cell, plain bool) {
	r := &c.Record
	own := r.Incarnation == n.incarnation() && r.Term == n.m.Term()
	if q := r.Request; own && q != nil && q.Term == r.Term {
		n.wish(q.To, plain)
	}
}

// named: a release names one who was to follow, if anybody was named (H1).
func (c *check) named(n *node, op *protocol.Op) {
	r, w := &op.Record, &n.wishes
	released := op.Write && r.Released && r.Term == w.term && r.Term == n.term
	if released && w.plain && !slices.Contains(w.names, r.Successor) {
		c.failf("%s releases term %d for %q, and was told of %q",
			n.incarnation(), r.Term, r.Successor, w.names)
	}
}
