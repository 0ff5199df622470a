package main

import (
	"errors"
	"slices"
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
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

// precedence returns how long the others wait for a nominee.
func (p *plan) precedence() time.Duration {
	if !p.nominated {
		return 0
	}
	return p.lease / 2
}

// nominate is the nominator outside the election. Usually it names one member instead of another.
// Some members learn late that they are no longer named, and at times no member is.
func (w *world) nominate() {
	next := w.anyone()
	if w.chance(0.15) {
		next = nil
	}
	for _, n := range w.nodes {
		late := time.Duration(0)
		if w.chance(0.2) {
			late = w.span(3 * w.plan.lease)
		}
		w.queue.add(w.now+late, func() {
			if !w.calm {
				n.appoint(n == next)
			}
		})
	}
}

// appoint is the final nomination: one member is named, or none, and all know it.
func (w *world) appoint(best *node) {
	if !w.plan.nominated {
		return
	}
	for _, n := range w.nodes {
		n.appoint(n == best)
	}
}

// choose names a member if none was named for a long time. This member asks for a hand-over, and
// leads.
func (w *world) choose() {
	leader := w.leading()
	alive := slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool {
		return !n.alive || n == leader
	})
	if len(alive) == 0 {
		return
	}
	best := alive[len(alive)-1]
	w.deaf = false
	w.appoint(best)
	w.queue.add(w.now+w.askBound(), func() {
		late := w.orderUncertain() || w.byReading() && w.plan.slew // see handOver
		if w.leading() != best && !late {
			w.check.failf("%s does not lead, though it alone is named", best.incarnation())
		}
	})
}

// askBound bounds the time that a healthy member needs to ask for a hand-over and to lead.
func (w *world) askBound() time.Duration { return 3*w.longest() + w.handOverBound() }

// nomination is the last nomination of a node, and when it came.
type nomination struct {
	named bool // in reality
	heard bool // by the machine's last input
	since time.Duration
	term  uint64 // the last one in which it was the nominee
}

func (n *node) appoint(nominee bool) {
	n.nomination.named = nominee
	if n.alive {
		n.run(n.lives, n.hear)
	}
}

// hear gives the nomination to the machine.
func (n *node) hear() {
	if n.nomination.heard == n.nomination.named {
		return
	}
	n.nomination.heard, n.nomination.since = n.nomination.named, n.w.now
	n.w.tracef(n, "is the nominee: %v", n.nomination.heard)
	n.serveAsNominee()
	n.m.Nominate(n.now(), n.nomination.heard)
	n.pump()
}

// serveAsNominee is called with each term and each nomination.
func (n *node) serveAsNominee() {
	if n.nomination.heard && n.working {
		n.nomination.term = n.term
	}
}

// deferred notes the claims of members that are not the nominee.
func (c *check) deferred(n *node, op *protocol.Op) {
	r, p := &op.Record, &c.w.plan
	if !p.nominated || !op.Write || !r.Held() || r.Seq != 1 || n.nomination.heard {
		return
	}
	if p.strict {
		c.failf("%s claims term %d, and is not the nominee", n.incarnation(), r.Term)
	}
	c.byOutsider[r.Nonce] = true
}

// precede checks that another member does not take at once what the nominee may claim first. It
// does not check where a state may come back that members have seen long ago.
func (c *check) precede(r *record.Record) {
	p := &c.w.plan
	comesBack := p.rollback || p.loses || p.remakes && !p.eras
	waited := c.w.now - c.w.store.changed
	if c.byOutsider[r.Nonce] && !comesBack && waited < p.precedence()*9/10 {
		c.failf("%s, who is not the nominee, has term %d %v after the state before it", r.Incarnation, r.Term, waited)
	}
}

// overstays checks that a leader whose nomination has ended leaves as soon as its work has
// finished, and at the latest when the work must have finished.
func (c *check) overstays(n *node) {
	p := &c.w.plan
	if n.nomination.term != n.term || n.nomination.heard || !n.working || !n.m.Holds(n.now()) {
		return
	}
	bound := (p.finishWithin+p.grace)*12/10 + p.renew
	if since := max(n.nomination.since, n.proc.stillUntil); c.w.now > since+bound {
		c.failf("%s leads %v after its nomination ended", n.incarnation(), c.w.now-since)
	}
}

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
