package main

import (
	"slices"
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

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
// does not check after a state was put back: members may have seen that state long ago.
func (c *check) precede(r *record.Record) {
	p := &c.w.plan
	if waited := c.w.now - c.w.store.changed; c.byOutsider[r.Nonce] && !p.rollback && !p.loses && waited < p.precedence()*9/10 {
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
