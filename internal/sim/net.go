package main

import (
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// send carries an operation to the store and its answer back, with all that may befall them.
func (n *node) send(op protocol.Op) {
	w := n.w
	w.stats.ops++
	n.count(op.Write)
	there, lost := w.hop(n)
	if lost {
		w.tracef(n, "sends %s, which is lost", describe(op))
		return
	}
	if op.Write && w.plan.replay && !w.calm && w.chance(0.1) {
		n.replay(op, there)
		return
	}
	w.queue.add(w.now+there, func() { n.deliver(op) })
}

// deliver is the moment in which the store decides.
func (n *node) deliver(op protocol.Op) {
	if op.Write {
		v, out := n.w.store.swap(op.Prev, op.Record)
		n.w.tracef(n, "%s: %v, version %s", describe(op), out == protocol.Applied, v)
		n.answer(op, protocol.Cell{}, v, out)
		return
	}
	c := n.w.store.read()
	n.w.tracef(n, "reads version %q term %d of %s", c.Version, c.Record.Term, c.Record.Incarnation)
	n.answer(op, c, "", protocol.Applied)
}

// replay delivers a request twice: at once with a second answer, or a second time much later.
func (n *node) replay(op protocol.Op, there time.Duration) {
	w := n.w
	if w.chance(0.5) {
		w.queue.add(w.now+there, func() {
			w.store.swap(op.Prev, op.Record)
			n.deliver(op)
		})
		return
	}
	w.queue.add(w.now+there, func() { n.deliver(op) })
	w.queue.add(w.now+there+w.span(2*w.plan.lease), func() { w.store.swap(op.Prev, op.Record) })
}

func (n *node) answer(op protocol.Op, c protocol.Cell, v driver.Version, out protocol.Outcome) {
	back, lost := n.w.hop(n)
	if lost {
		return
	}
	if n.w.plan.fail && !n.w.calm && n.w.chance(0.05) {
		out = protocol.Unknown
	}
	n.later(back, func() {
		if op.Write {
			n.m.WriteDone(n.now(), op.ID, v, out, nil)
		} else {
			n.m.ReadDone(n.now(), op.ID, c, out, nil)
		}
		n.pump()
	})
}

// push tells every watcher of a new state: late, twice, or never.
func (w *world) push(c protocol.Cell) {
	if !w.plan.watch {
		return
	}
	for _, n := range w.nodes {
		w.pushTo(n, c)
		if w.plan.replay && !w.calm && w.chance(0.05) {
			w.pushTo(n, c)
		}
	}
}

func (w *world) pushTo(n *node, c protocol.Cell) {
	if !n.alive {
		return
	}
	d, lost := w.hop(n)
	if lost {
		return
	}
	n.later(d, func() {
		n.m.Seen(n.now(), c)
		n.pump()
	})
}

// hop is the way of one message between a member and the store.
func (w *world) hop(n *node) (time.Duration, bool) {
	d := w.plan.latency/2 + w.span(w.plan.latency)
	if w.calm {
		return d, false
	}
	if n.proc.cutUntil > w.now || w.outageUntil > w.now {
		return 0, !w.plan.slow || w.chance(0.7) // a request may also come through much later
	}
	if w.plan.lose && w.chance(0.05) {
		return 0, true
	}
	if w.plan.slow && w.chance(0.05) {
		d += w.span(w.plan.lease * 3 / 2)
	}
	return d, false
}

// count keeps the budget of operations in the calm at the end.
func (n *node) count(write bool) {
	if !n.w.settled {
		return
	}
	if write {
		n.w.stats.calmWrites++
	} else {
		n.w.stats.calmReads++
	}
}
