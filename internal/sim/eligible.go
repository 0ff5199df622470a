package main

import (
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
)

// fitness is whether a node is fit to lead, and since when its machine knows.
type fitness struct {
	unfit bool // in reality
	heard bool // by the machine's last input
	since time.Duration
}

// makeUnfit makes a member unfit to lead for a while, most often the leader. The named successor
// may be unfit as well.
func (w *world) makeUnfit() {
	n := w.victim()
	n.stand(false)
	switch {
	case w.chance(0.3):
		to := w.someName()
		n.run(n.lives, func() { n.handOver(to) })
	case w.extra.chance(0.5) && n.working:
		n.dawdles = n.term // so that the request reaches it
		w.name(w.other(n).name)
	}
	w.queue.add(w.now+w.span(3*w.plan.lease), func() {
		if !w.calm {
			n.stand(true)
		}
	})
}

// handOver asks for a hand-over in the leader's own process.
func (n *node) handOver(to string) {
	n.m.HandOver(n.now(), to, "operator")
	n.wish(to, true)
	n.pump()
}

func (n *node) stand(fit bool) {
	n.fitness.unfit = !fit
	if n.alive {
		n.run(n.lives, n.declare)
	}
}

// declare gives the fitness to the machine.
func (n *node) declare() {
	f := &n.fitness
	if f.heard == f.unfit {
		return
	}
	f.heard, f.since = f.unfit, n.w.now
	n.w.tracef(n, "is fit to lead: %v", !f.unfit)
	n.m.SetEligible(n.now(), !f.unfit)
	n.pump()
	n.w.check.askedToFinish(n)
}

// askedToFinish checks that a leader is asked to finish as soon as it is not eligible.
func (c *check) askedToFinish(n *node) {
	if n.fitness.heard && n.working && n.m.Holds(n.now()) && n.leaving != n.term {
		c.failf("%s is not eligible, and is not asked to finish term %d", n.incarnation(), n.term)
	}
}

// unfit checks that a member that is not eligible claims nothing, and keeps nothing that it has
// just won.
func (c *check) unfit(n *node, op *protocol.Op) {
	r := &op.Record
	if n.fitness.heard && op.Write && r.Held() && (r.Seq == 1 || !n.working) {
		c.failf("%s sends a %s of term %d, and is not eligible", n.incarnation(), kindOf(r), r.Term)
	}
}

// outstays checks that a leader that is not eligible leaves as soon as its work has finished, and
// at the latest when the work must have finished.
func (c *check) outstays(n *node) {
	f := &n.fitness
	if !n.alive || !f.heard || !n.m.Holds(n.now()) {
		return
	}
	bound := c.w.plan.finishWithin*12/10 + 2*n.late
	if since := max(f.since, n.proc.stillUntil); c.w.now > since+bound {
		c.failf("%s leads %v after it was eligible last", n.incarnation(), c.w.now-since)
	}
}

// fit returns the members that may lead.
func (w *world) fit() []*node {
	var all []*node
	for _, n := range w.nodes {
		if !n.fitness.unfit {
			all = append(all, n)
		}
	}
	return all
}

// makeAllFit makes all members fit to lead in the end, at times except the best one.
func (w *world) makeAllFit() {
	for _, n := range w.nodes {
		n.stand(true)
	}
	if p := &w.plan; p.fickle && (p.ranked || p.nominated && !p.stuck) && w.chance(0.5) {
		w.nodes[len(w.nodes)-1].stand(false)
	}
}

// trial checks the normal course where members are not always fit to lead: the leader becomes
// unfit, then all do, and then one of them is fit again.
func (w *world) trial() {
	from := w.leading()
	if from == nil {
		w.check.failf("nobody leads %v after the last fault", w.now-w.calmAt)
		return
	}
	w.trying = true
	to := w.other(from)
	alone := w.chance(0.3)
	for _, n := range w.nodes {
		n.stand(n == to || n != from && !alone)
	}
	named := w.chance(0.85)
	if named {
		w.nameSuccessor(from, to)
	}
	w.queue.add(w.now+w.handOverBound(), func() { w.tried(from, to, alone || named) })
}

// other returns another member than n.
func (w *world) other(n *node) *node {
	i := w.rng.IntN(len(w.nodes) - 1)
	if i >= n.index {
		i++
	}
	return w.nodes[i]
}

// nameSuccessor names the successor of a leader that is leaving, in its own process or through the
// store.
func (w *world) nameSuccessor(from, to *node) {
	w.tracef(nil, "%s is to follow %s", to.name, from.incarnation())
	if w.plan.mixed || w.chance(0.5) { // a leader with a long lease may see a request too late
		from.handOver(to.name)
		return
	}
	w.name(to.name)
}

// name names a successor through the store. A leader that is leaving takes the name in an offer at
// once.
func (w *world) name(to string) {
	if w.plan.offers && w.offers.chance(0.7) {
		w.store.offer(to)
		return
	}
	w.store.request(to)
}

// tried checks that another member leads by now. Then it makes all members unfit.
func (w *world) tried(from, to *node, certain bool) {
	n := w.leading()
	uncertain := w.orderUncertain() // see handOver
	if n == nil || n == from || certain && n.name != to.name && !uncertain {
		w.check.failf("%s was to take over from %s, which is not eligible, and did not", to.incarnation(), from.incarnation())
		return
	}
	for _, n := range w.nodes {
		n.stand(false)
	}
	empty := w.now + w.plan.finishWithin*12/10 + time.Second
	w.queue.add(empty+2*w.longest(), func() {
		if w.check.elected > empty || w.leading() != nil {
			w.check.failf("a member leads, and no member is eligible")
			return
		}
		w.recover(w.nodes[w.rng.IntN(len(w.nodes))])
	})
}

// recover makes one member fit again. It leads at once. Then the other members become fit.
func (w *world) recover(one *node) {
	w.trying = false
	one.stand(true)
	bound := w.plan.grace*12/10 + 12*w.plan.latency + time.Second/10
	w.queue.add(w.now+bound, func() {
		if w.leading() != one {
			w.check.failf("%s does not lead, and no other member is eligible", one.incarnation())
			return
		}
		for _, n := range w.nodes {
			n.stand(true)
		}
		if w.trials++; w.trials < 2 && w.room(w.longest()+2*w.handOverBound()+w.plan.finishWithin+4*w.longest()+w.cfg.Hour/60) {
			w.queue.add(w.now+w.longest(), w.trial)
			return
		}
		w.settle()
	})
}
