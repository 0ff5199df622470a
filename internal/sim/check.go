package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// check is the judge. Nothing here asks the protocol for its opinion of itself but Holds, which is the very answer that a
// user would act upon.
type check struct {
	w       *world
	fault   error
	highest uint64            // the highest term ever elected or held in the store
	owner   map[uint64]string // who has a term
	token   uint64            // the highest token that the resource has seen
	amnesty time.Duration     // an older state was put back: until then two leaders are nobody's fault
}

func (c *check) failf(format string, args ...any) {
	if c.fault == nil {
		c.fault = fmt.Errorf("at %v: "+format, append([]any{c.w.now}, args...)...)
		c.w.tracef(nil, "FAULT %v", c.fault)
	}
}

// excused: nothing that a lease can do helps against an old backup, or against a machine that was frozen with its clocks.
func (c *check) excused(n *node) bool { return c.w.now < c.amnesty || n.proc.frozen }

// elected: a term begins. Now, and only now, a second valid lease could come to be.
func (c *check) elected(n *node, term uint64) {
	c.w.stats.elections++
	if term < c.highest && !c.excused(n) {
		c.failf("%s elected with term %d after term %d", n.incarnation(), term, c.highest)
	}
	c.own(term, n.incarnation())
	for _, o := range c.w.nodes {
		if o == n || !o.alive || c.excused(o) || c.excused(n) {
			continue
		}
		if o.m.Holds(o.now()) {
			c.failf("two valid leases: %s term %d, %s term %d", n.incarnation(), term, o.incarnation(), o.term)
		}
		if o.working && !o.stalled && o.proc.stillUntil <= c.w.now {
			c.failf("two at work: %s term %d, %s term %d", n.incarnation(), term, o.incarnation(), o.term)
		}
	}
}

func (c *check) own(term uint64, who string) {
	if was, ok := c.owner[term]; ok && was != who {
		c.failf("term %d belongs to %s and %s", term, was, who)
	}
	c.owner[term] = who
	c.highest = max(c.highest, term)
}

// write: a record goes into the store.
func (c *check) write(old *protocol.Cell, r *record.Record) {
	switch {
	case old.Kind == protocol.Foreign:
		c.failf("foreign bytes overwritten by %s", r.Incarnation)
	case r.Held() && r.Seq == 1:
		c.claimed(old, r)
	case r.Released:
		c.released(r)
	}
}

func (c *check) claimed(old *protocol.Cell, r *record.Record) {
	if old.Kind == protocol.Absent && !old.Pristine {
		c.failf("absence claimed by %s", r.Incarnation)
	}
	if r.Term <= c.highest {
		c.failf("term %d claimed after term %d", r.Term, c.highest)
	}
	if r.Request != nil {
		c.failf("term %d begins with a request", r.Term)
	}
	c.own(r.Term, r.Incarnation)
}

// released: its work must have stopped.
func (c *check) released(r *record.Record) {
	for _, n := range c.w.nodes {
		if n.alive && n.working && n.term == r.Term && n.incarnation() == r.Incarnation {
			c.failf("term %d released while %s works", r.Term, r.Incarnation)
		}
	}
}

// answer: somebody was told whether he may act.
func (c *check) answer(n *node, term uint64, yes bool) {
	if yes && n.doubted == term {
		c.failf("%s was told that term %d is over, and now that it is not", n.incarnation(), term)
	}
	if yes && c.highest > term && !c.excused(n) {
		c.failf("%s may act by term %d while term %d is held", n.incarnation(), term, c.highest)
	}
	if !yes {
		n.doubted = term
	}
}

// act: the work touches the resource. A prompt act needs no token; a late one must carry an old token if another leads.
func (c *check) act(n *node, term uint64, prompt bool, left time.Duration) {
	if c.excused(n) {
		return
	}
	if term < c.token && prompt {
		c.failf("%s acts by term %d (%v left when it asked) after an act by term %d", n.incarnation(), term, left, c.token)
	}
	c.token = max(c.token, term)
}

// calm checks the end of the run: faults are over, so there is a leader, it stays, and it costs little.
func (c *check) calm() {
	w := c.w
	n := w.leading()
	if n == nil {
		c.failf("nobody leads, though nothing has gone wrong for %v", w.now-w.calmAt)
		return
	}
	span := w.now - w.settledAt
	writes := int(span*11/10/w.plan.renew) + 3 // a slewed clock makes a leader hasten
	if w.plan.mixed {
		writes *= 3
	}
	if w.stats.calmWrites > writes {
		c.failf("%d writes in %v of calm, more than %d", w.stats.calmWrites, span, writes)
	}
	reads := 0
	if !w.plan.watch {
		reads = len(w.nodes) * (int(span/(w.plan.poll*8/10)) + 3)
	}
	if w.stats.calmReads > reads {
		c.failf("%d reads in %v of calm, more than %d", w.stats.calmReads, span, reads)
	}
	if w.stats.calmTerms > 0 {
		c.failf("%d changes of leader in the calm", w.stats.calmTerms)
	}
}
