package main

import (
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// Where members have clocks of different quality, the worst case is a leader whose clock runs as
// slow as it may, and followers whose clocks run as fast as theirs may.

// strain sets such clocks. The leader is cut off from the store as soon as it has renewed, and at
// times loses its record too.
func (w *world) strain() {
	leader := w.leading()
	if leader == nil {
		return
	}
	for _, n := range w.nodes {
		if p := n.proc; !p.clocks.asleep {
			off := w.cfg.Drift * p.bound
			if p == leader.proc {
				off = -off
			}
			p.clocks.set(w.now, 1+off, 1+off, 1+off)
			w.rearm(p)
		}
	}
	w.tracef(leader, "has the slowest clock, and will be cut off")
	leader.straining = true
}

// strained is called with the outcome of each write of n.
func (n *node) strained(applied bool) {
	w := n.w
	if !n.straining || !applied || w.calm {
		return
	}
	n.straining = false
	// After this pause the store's clock shows a later time.
	w.queue.add(w.now+2*w.plan.latency+2*time.Millisecond, func() {
		if !w.calm {
			n.proc.cutUntil = w.now + 2*w.plan.lease
			w.tracef(n, "is cut off until %v", n.proc.cutUntil)
			w.damage()
		}
	})
}

// garble damages a held record. The length of its lease is still readable.
func (w *world) garble() {
	if was := &w.store.cell.Record; was.Held() {
		c := malformed
		c.Record = record.Record{Lease: was.Lease, Term: was.Term, Nonce: was.Nonce}
		w.store.put(c)
	}
}

// restore puts back the record of an earlier holder, if there is one.
func (w *world) restore() {
	s := w.store
	for _, old := range s.history {
		if c := old.cell; c.Kind == protocol.Valid && c.Record.Held() && c.Record.Incarnation != s.cell.Record.Incarnation {
			w.putBack(c)
			return
		}
	}
	w.rollback()
}

// damage applies one of this run's faults to records, or none.
func (w *world) damage() {
	p := &w.plan
	var some []func()
	for _, f := range []struct {
		on bool
		do func()
	}{
		{true, func() {}}, {p.erase, func() { w.store.put(absent) }}, {p.wreck, w.garble}, {p.wreck, w.garble},
		{p.rollback, w.restore}, {p.rollback, w.restore}, {p.rollback, w.restore},
		{p.foreign && p.resets, func() { w.store.put(foreign); w.queue.add(w.now+2*time.Millisecond, w.reset) }},
	} {
		if f.on {
			some = append(some, f.do)
		}
	}
	some[w.extra.rng.IntN(len(some))]()
}
