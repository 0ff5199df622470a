package main

import (
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// waited checks that no member replaces a record with a lease before that lease is over, by true
// time (L2, L3), whether its holder is alive or not. The lease counts from when the record was put
// there, which is before any member has seen it.
func (c *check) waited(n *node, old *protocol.Cell, r *record.Record) {
	p, was := &c.w.plan, &old.Record
	mine := was.Held() && was.Incarnation == r.Incarnation
	free := old.Kind == protocol.Absent || was.Released || mine
	if s := c.w.store; s.strayed && s.life.era > 0 && n != nil && n.born < s.life.from {
		// A member that saw the store recreated believes nothing from before (L3a).
		free = false
	}
	if c.w.store.inherited(old) {
		free = false // later writes may be lost
	}
	if free || n == nil || p.loses || c.w.now < max(c.amnesty, c.fragile) {
		return
	}
	bound := 0.0
	if old.Kind == protocol.Valid && was.Held() {
		bound = float64(was.Drift) / 1e6
	}
	lease, its := float64(max(was.Lease, r.Lease)), n.proc.bound
	least := time.Duration(lease * max(1, (1+its)/(1+bound)) / (1 + c.w.cfg.Drift*its))
	if waited := c.w.now - c.w.store.changed; waited < least-time.Millisecond {
		c.failf("%s takes over %v after the state before it, which may be held for %v",
			r.Incarnation, waited, least)
	}
}
