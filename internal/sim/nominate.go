package main

import (
	"slices"
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// precedence is what the others leave to a nominee.
func (p *plan) precedence() time.Duration {
	if !p.nominated {
		return 0
	}
	return p.lease / 2
}

// nominate is what goes on outside of the election: as a rule one member is named instead of another; but some hear late
// that they no longer are, and at times nobody is named.
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

// appoint is the last word: one member is named, or nobody, and all know.
func (w *world) appoint(best *node) {
	if !w.plan.nominated {
		return
	}
	for _, n := range w.nodes {
		n.appoint(n == best)
	}
}

// choose names a member at last where none was named for long: it asks for a hand-over, and leads.
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
		late := w.vague() || w.byReading() && w.plan.slew // see handOver
		if w.leading() != best && !late {
			w.check.failf("%s does not lead, though it alone is named", best.incarnation())
		}
	})
}

// askBound is how long it takes one who is well to ask for a hand-over, and to lead.
func (w *world) askBound() time.Duration { return 3*w.longest() + w.handOverBound() }

// nomination is what a node was told, and when.
type nomination struct {
	named bool // as things are outside
	heard bool // as the machine was told
	since time.Duration
	term  uint64 // the last one in which it was the nominee
}

func (n *node) appoint(nominee bool) {
	n.nomination.named = nominee
	if n.alive {
		n.run(n.lives, n.hear)
	}
}

// hear tells the machine.
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

// deferred notes the claims of those who are not the nominee.
func (c *check) deferred(n *node, op *protocol.Op) {
	r, p := &op.Record, &c.w.plan
	if !p.nominated || !op.Write || !r.Held() || r.Seq != 1 || n.nomination.heard {
		return
	}
	if p.strict {
		c.failf("%s claims term %d, and is not the nominee", n.incarnation(), r.Term)
	}
	c.meek[r.Nonce] = true
}

// precede: nobody else takes at once what is left to the nominee. What was put back may have been seen long ago.
func (c *check) precede(r *record.Record) {
	p := &c.w.plan
	if waited := c.w.now - c.w.store.changed; c.meek[r.Nonce] && !p.rollback && !p.loses && waited < p.precedence()*9/10 {
		c.failf("%s, who is not the nominee, has term %d %v after the state before it", r.Incarnation, r.Term, waited)
	}
}

// overstays: a leader whose nomination has ended leaves as soon as its work has finished, or must have.
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
