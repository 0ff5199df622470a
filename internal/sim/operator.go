package main

import (
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// The operator resets an election whose record is damaged, or somebody else's.

// reset looks, and if the record is not sound puts another in its place: late, or twice, as requests are.
func (w *world) reset() {
	seen := w.store.read()
	r, ok := w.operator().Vacate(seen)
	if !ok {
		return
	}
	late := time.Duration(0)
	if w.plan.slow && !w.calm && w.more.chance(0.5) {
		late = w.more.span(2 * w.plan.lease)
	}
	number := w.store.life.number
	deliver := func() {
		if number == w.store.life.number { // docs/guarantees.md: no operator's request of a former life
			w.store.reset(seen.Version, r)
		}
	}
	w.queue.add(w.now+late, deliver)
	if w.plan.replay && !w.calm && w.more.chance(0.5) {
		w.queue.add(w.now+late+w.more.span(2*w.plan.lease), deliver)
	}
}

// operator is who resets: as a rule somebody who has seen nothing of the election before. It promises that nobody leads with
// a longer lease than its own, where that cannot be read in what it finds.
func (w *world) operator() *protocol.Machine {
	n := w.anyoneMore()
	if !w.plan.mixed && n.alive && w.more.chance(0.3) {
		return n.m
	}
	lease := w.plan.lease
	switch {
	case w.plan.mixed && w.plan.foreign:
		lease = lease * 3 / 2
	case w.plan.mixed: // what is damaged shows its lease
		lease /= 2
	}
	return protocol.New(&protocol.Config{Lease: lease.Truncate(time.Millisecond), Rand: w.more.rng.Uint64}, "")
}

func (w *world) anyoneMore() *node { return w.nodes[w.more.rng.IntN(len(w.nodes))] }

// reset is one request of the operator's.
func (s *store) reset(prev driver.Version, r record.Record) {
	if prev != s.cell.Version {
		return
	}
	value, err := record.Encode(r)
	if err == nil {
		r, err = record.Decode(value)
	}
	if err != nil {
		s.w.check.failf("the election cannot be reset: %v", err)
		return
	}
	s.w.tracef(nil, "the operator resets the election")
	s.w.check.resets(&s.cell)
	if s.w.plan.replay && s.cell.Kind == protocol.Foreign {
		s.again = func() {
			s.put(foreign)
			s.reset(prev, r)
		}
		s.often = 0.5
	}
	s.seq++
	s.place(protocol.Cell{Kind: protocol.Valid, Record: r, Version: s.version(&r)})
}

// resets: nothing that is sound is reset.
func (c *check) resets(old *protocol.Cell) {
	if old.Kind != protocol.Foreign && old.Kind != protocol.Broken {
		c.failf("a sound record of term %d is reset", old.Record.Term)
	}
}
