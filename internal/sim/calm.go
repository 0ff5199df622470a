package main

import (
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
)

// The last quarter of a run: the faults end, and the checks demand the normal course of an
// election.

// quieten ends the faults: every member is alive, and every message arrives.
func (w *world) quieten() {
	w.calm, w.calmAt = true, w.now
	w.outageUntil = 0
	w.repair()
	w.watchAll()
	w.makeAllFit()
	for _, n := range w.nodes {
		n.proc.cutUntil = min(n.proc.cutUntil, w.now)
		if n.leftover != 0 {
			n.kill()
		}
		n.boot()
	}
	// One member may be stopped for three more leases, keep its record for one lease, ignore a
	// request, and make others wait for its lease.
	bound := 12*w.plan.lease + 3*w.plan.finishWithin + 3*w.plan.pollStable + w.plan.precedence()
	bound = min(bound, w.cfg.Hour/10)
	if w.plan.stuck {
		w.appoint(nil)
	}
	if w.plan.several {
		for i, n := range w.nodes {
			n.appoint(i == 0 || i == len(w.nodes)-1)
		}
		// A member that is not named may still lead, and be asked to leave once.
		w.queue.add(min(w.now+bound+16*w.longest(), w.cfg.Hour-w.watched()-time.Second), w.settle)
		return
	}
	if w.plan.ranked || w.plan.nominated && !w.plan.stuck {
		w.appoint(w.nodes[len(w.nodes)-1])
		// A member may just have asked for a hand-over that failed. Leaders change for no other
		// reason now.
		w.queue.add(min(w.now+bound+16*w.longest(), w.cfg.Hour*99/100), w.ranking)
		return
	}
	next := w.settle
	if w.plan.fickle {
		next = w.trial
	}
	w.queue.add(w.now+bound, next)
}

// ranking checks that, when all are well, the eligible member with the highest priority leads.
// Without the nominee it may be any member, or must be none.
func (w *world) ranking() {
	fit, n := w.fit(), w.leading()
	best := fit[len(fit)-1]
	if w.plan.nominated && len(fit) < len(w.nodes) {
		if (n == nil) != w.plan.strict {
			w.check.failf("the nominee is not eligible; somebody leads: %v", n != nil)
		}
		return
	}
	if n != best {
		w.check.failf("%s does not lead, though its priority is the highest, or it is the nominee", best.incarnation())
	}
}

// settle checks that there is a leader by now. From now on the checks watch whether it stays, and
// at what cost, although one of its renewals, or the answer to one, is lost.
func (w *world) settle() {
	w.settled, w.settledAt = true, w.now
	w.stats.calmTerms = -w.stats.elections
	if w.leading() == nil {
		w.check.failf("nobody leads %v after the last fault", w.now-w.calmAt)
		return
	}
	w.queue.add(w.now+w.span(w.plan.lease), func() { w.lossy = !w.plan.cramped() })
	w.queue.add(w.now+w.watched(), func() {
		w.settled = false
		w.stats.calmTerms += w.stats.elections
		w.check.budget()
		if !w.plan.several { // no rule says which of two nominees takes over
			w.handOver()
		}
	})
}

// watched returns for how long the leader must stay, and the cost is counted.
func (w *world) watched() time.Duration { return 2*w.plan.lease + w.cfg.Hour/60 }

// losing reports whether op is the one write that is lost: a renewal while the run is settled, and
// the release afterwards.
func (w *world) losing(op protocol.Op) bool {
	if !w.lossy || !op.Write || op.Record.Released == w.settled {
		return false
	}
	w.lossy = false
	if w.chance(0.5) {
		w.store.swap(op.Prev, op.Record) // only the answer is lost
	}
	return true
}

// handOver asks the leader to hand over: to a certain member, to any, or to an absent one.
func (w *world) handOver() {
	from := w.leading()
	if from == nil {
		w.check.failf("nobody leads in the calm")
		return
	}
	to, others := "", false
	for _, o := range w.nodes {
		if o.name != from.name {
			to, others = o.name, true
		}
	}
	named := w.chance(0.5)
	if !named {
		to = [2]string{"", nobodyHas}[w.rng.IntN(2)]
	}
	offered := w.plan.offers && to != "" && w.offers.chance(0.7)
	bound, term := w.handOverBound(), from.term
	if offered {
		bound += 2*w.longest() + w.gap() // it is accepted first, or dropped
		w.store.offer(to)
	} else {
		w.store.request(to)
	}
	w.lossy = !w.plan.cramped() && w.chance(0.3)
	w.tracef(nil, "%s is asked to make room for %q", from.incarnation(), to)
	w.queue.add(w.now+bound, func() {
		if offered && to == nobodyHas {
			w.refused(from, term)
		} else {
			w.moved(from, to, others && named)
		}
		if w.rounds++; w.rounds < 3 && w.room(2*w.longest()+bound) {
			w.queue.add(w.now+2*w.longest(), w.handOver)
			return
		}
		w.deaf = w.chance(0.3)
		w.queue.add(w.now+2*w.longest(), w.finale)
	})
}

// moved checks that another member leads, the named one if it is there.
func (w *world) moved(from *node, to string, there bool) {
	n := w.leading()
	// On slewed clocks, or if another's longer lease lets it read more seldom, the leader that
	// stands back for a poll may be first again.
	back := n == from && !(w.byReading() && (w.plan.slew || w.uneven())) && !w.orderUncertain()
	if n == nil || back || there && n.name != to && !w.orderUncertain() {
		w.check.failf("%q was to take over from %s and did not", to, from.incarnation())
	}
}

// room reports whether d is left before the last parts of a run must begin.
func (w *world) room(d time.Duration) bool {
	last := 2*w.longest() + w.vacancy()
	if w.plan.stuck {
		last += w.askBound()
	}
	return w.now+d+last < w.cfg.Hour
}

// vacancy returns how long the others need to replace a leader that died. A follower's clock may be
// slewed by 8.3 %; it reads once more before it claims.
func (w *world) vacancy() time.Duration {
	p := &w.plan
	wait := (w.longest() + p.precedence()) * 111 / 100
	return wait + w.gap() + p.poll/2 + p.grace + 20*p.latency + time.Second/10
}

// orderUncertain reports whether another member may claim before the named one. There are four
// causes. The named member reads less often, because of a longer lease or a slower clock. Its
// messages take as long as the head start. It waits for a nominee on a slower clock. Or it learns
// late that the store was recreated.
func (w *world) orderUncertain() bool {
	p := &w.plan
	seldom := w.byReading() && (p.bounds || w.uneven())
	return seldom || p.cramped() || p.nominated && p.bounds || p.blank
}

// byReading reports whether members find out by reading that another leads or has left. Peers get
// pushes only from a leader that they have read of.
func (w *world) byReading() bool { return !w.plan.watch || w.plan.peers }

// uneven reports whether the leases of members differ now, so that one may read less often than
// another expects.
func (w *world) uneven() bool {
	for _, n := range w.nodes {
		if n.cfg.Lease != w.nodes[0].cfg.Lease {
			return true
		}
	}
	return false
}

// handOverBound bounds a hand-over: the leader sees the request when it renews, takes its time, and
// the successor sees the release when it polls.
func (w *world) handOverBound() time.Duration {
	p := &w.plan
	bound := p.finishWithin/2 + w.longest() + 3*w.gap() + p.grace + p.precedence()*13/10
	if w.trying {
		bound += p.finishWithin / 2
	}
	if p.peers { // a member does not assume that the others have seen the change
		bound += w.longest()
	}
	return bound
}

// finale kills the leader. The watches may have been broken silently for a while. A request for a
// hand-over is added to the leader's record just before its lease expires. It must not extend the
// lease: the followers' timers go on. If leases differ, members may take over before that, so no
// request is made.
func (w *world) finale() {
	n := w.leading()
	if n == nil {
		w.check.failf("nobody leads in the calm")
		return
	}
	n.kill()
	killed := w.now
	if !w.plan.mixed {
		w.queue.add(w.now+w.plan.lease*9/10, func() { w.store.request("") })
	}
	w.queue.add(w.now+w.vacancy(), func() {
		if w.check.elected < killed {
			w.check.failf("nobody leads %v after the leader died", w.now-killed)
		}
		if w.plan.stuck {
			w.choose()
		}
	})
}

// gap returns the longest time in which a healthy follower does not notice a change.
func (w *world) gap() time.Duration {
	if w.plan.peers { // they find a new leader by reading
		return w.plan.poll * 3 / 2
	}
	if w.plan.watch { // silence for a heartbeat causes a read
		return max(w.plan.poll, w.longest()*5/12)
	}
	slow := 1 / (1 - w.plan.widest())
	return max(time.Duration(float64(w.plan.poll)*1.1*slow), min(time.Duration(float64(w.plan.pollStable)*1.1*slow), w.longest()))
}

// budget bounds the cost of a leader that stays: a write in each interval, and reads only where
// nothing is pushed.
func (c *check) budget() {
	w := c.w
	span := w.now - w.settledAt
	writes := int(span*11/10/w.plan.renew) + 4 // a slewed clock makes a leader hasten
	if w.plan.mixed {
		writes *= 3
	}
	if w.stats.calmWrites > writes {
		c.failf("%d writes in %v of calm, more than %d", w.stats.calmWrites, span, writes)
	}
	reads := 1 + len(w.nodes)
	switch {
	case !w.plan.watch:
		reads += len(w.nodes) * (int(span/(w.plan.poll*8/10)) + 3)
	case w.plan.bounds, w.plan.peers:
		// Pushes on a slow clock come late, and a new leader's pushes come only after a read.
		reads += len(w.nodes) * int(span/w.plan.renew)
	case w.plan.cramped(): // pushes are late by about the tolerated silence
		reads += len(w.nodes) * int(span/w.plan.renew) / 20
	}
	if w.plan.rumors { // a read verifies them now and then
		reads += len(w.nodes) * (2 + int(span/(9*w.plan.shortest())))
	}
	if w.stats.calmReads > reads {
		c.failf("%d reads in %v of calm, more than %d", w.stats.calmReads, span, reads)
	}
	if w.stats.calmTerms > 0 {
		c.failf("%d changes of leader in the calm", w.stats.calmTerms)
	}
}
