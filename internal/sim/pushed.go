package main

import (
	"errors"

	"github.com/tenure-go/tenure/internal/protocol"
)

// receivePush gives the machine a push, and checks that it is only a hint (L13): it ends no lease,
// and takes no member back to an older state. A peer's push counts only as far as the store has
// confirmed it.
func (n *node) receivePush(c protocol.Cell) {
	held, was := n.m.Holds(n.now()), n.shown()
	phase := n.m.Phase()
	n.m.Seen(n.now(), c)
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
