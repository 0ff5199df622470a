package main

import (
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// The operator resets an election whose record is damaged or foreign.

// reset reads the cell, and replaces foreign bytes or a malformed record. The request may be
// delivered late, or twice.
func (w *world) reset() {
	seen := w.store.read()
	operator, lease := w.operator()
	r, ok := operator.Vacate(seen)
	if !ok {
		return
	}
	late := time.Duration(0)
	if w.plan.slow && !w.calm && w.more.chance(0.5) {
		late = w.more.span(2 * w.plan.lease)
	}
	number := w.store.life.number
	deliver := func() {
		// An operator's request does not reach a later life of the store (docs/guarantees.md).
		if number == w.store.life.number {
			w.store.reset(seen.Version, r, lease)
		}
	}
	w.queue.add(w.now+late, deliver)
	if w.plan.replay && !w.calm && w.more.chance(0.5) {
		w.queue.add(w.now+late+w.more.span(2*w.plan.lease), deliver)
	}
}

// operator returns the machine that resets, usually one that has seen nothing of the election. No
// leader may have a longer lease than the one returned, unless the damaged cell shows it.
func (w *world) operator() (m *protocol.Machine, lease time.Duration) {
	n := w.anyoneMore()
	if !w.plan.mixed && n.alive && w.more.chance(0.3) {
		return n.m, n.cfg.Lease
	}
	lease = w.plan.lease
	switch {
	case w.plan.mixed && w.plan.foreign:
		lease = lease * 3 / 2
	case w.plan.mixed: // a damaged record shows its lease
		lease /= 2
	}
	lease = lease.Truncate(time.Millisecond)
	return protocol.New(&protocol.Config{Lease: lease, Rand: w.more.rng.Uint64}, ""), lease
}

func (w *world) anyoneMore() *node { return w.nodes[w.more.rng.IntN(len(w.nodes))] }

// reset is one request of the operator. No leader may have a longer lease than this one.
func (s *store) reset(prev driver.Version, r record.Record, lease time.Duration) {
	if prev != s.cell.Version {
		return
	}
	s.w.check.resets(&s.cell, &r, lease)
	value, err := record.Encode(r)
	if err == nil {
		r, err = record.Decode(value)
	}
	if err != nil {
		s.w.check.failf("the election cannot be reset: %v", err)
		return
	}
	s.w.tracef(nil, "the operator resets the election")
	if s.w.plan.replay && s.cell.Kind == protocol.Foreign {
		s.again = func() {
			s.put(foreign)
			s.reset(prev, r, lease)
		}
		s.often = 0.5
	}
	s.seq++
	s.place(protocol.Cell{Kind: protocol.Valid, Record: r, Version: s.version(&r)})
}

// resets checks that no valid record is reset. What can be read of a damaged record counts: its
// term, and its lease if that is longer than the operator's.
func (c *check) resets(old *protocol.Cell, r *record.Record, lease time.Duration) {
	was := &old.Record
	if old.Kind == protocol.Malformed && was.Lease < record.MaxLease {
		lease = max(lease, was.Lease)
	}
	switch {
	case old.Kind != protocol.Foreign && old.Kind != protocol.Malformed:
		c.failf("a valid record of term %d is reset", was.Term)
	case r.Lease < lease:
		c.failf("a reset shows a lease of %v, though a leader may have one of %v", r.Lease, lease)
	case r.Term < was.Term:
		c.failf("a reset goes back to term %d from term %d", r.Term, was.Term)
	}
}
