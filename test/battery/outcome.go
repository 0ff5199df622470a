package main

import (
	"time"

	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/figures"
)

// outcome is the result of one or more runs of a row.
type outcome struct {
	runs int
	// acts is the verdict on the journal.
	acts witness.Verdict
	// last is from a fault to the last act of the struck candidate, next to the first act of the
	// next worker, idle from the one to the other.
	last, next, idle figures.Dist
	orphans          int      // processes left over
	wrong            []string // promises broken other than by acts, orphans among them
	late             []string // events that took longer than they should
	figures          []figure
	errs             []error       // that something could not be played
	stood            time.Duration // how long the machine stood still at a time
}

// figure is a measure beside those that all rows have.
type figure struct {
	what, value, bound string
	verdict            figures.Verdict
}

// plus is the outcome of both.
func (o outcome) plus(p outcome) outcome {
	return outcome{
		acts:    o.acts.Plus(p.acts),
		runs:    o.runs + p.runs,
		last:    append(o.last, p.last...),
		next:    append(o.next, p.next...),
		idle:    append(o.idle, p.idle...),
		orphans: o.orphans + p.orphans,
		wrong:   append(o.wrong, p.wrong...),
		late:    append(o.late, p.late...),
		figures: append(o.figures, p.figures...),
		errs:    append(o.errs, p.errs...),
		stood:   max(o.stood, p.stood),
	}
}

// verdict is the worst there is to say.
func (o outcome) verdict() figures.Verdict {
	v := figures.Safe(o.acts.Safe() && len(o.wrong) == 0)
	v = max(v, figures.Within(len(o.late) == 0))
	for _, f := range o.figures {
		v = max(v, f.verdict)
	}
	if len(o.errs) > 0 {
		v = max(v, figures.Unmeasured)
	}
	return v
}

// disturbed reports whether the machine stood still for so long that a lease may have expired, or
// that times say nothing. That does not excuse acts, tokens and processes that are left.
func (o outcome) disturbed(lease time.Duration) bool {
	return o.acts.Safe() && o.orphans == 0 && o.stood > lease/10
}

// excused is an outcome of a machine that stood still: a leader that loses the lease by that leads
// no longer, and may break a leader's promises.
func (o outcome) excused() outcome {
	o.late, o.wrong = append(o.late, o.wrong...), nil
	return o
}

// passed reports whether every promise was kept. Bounds on time depend on other work of the
// machine, and are shown only.
func (o outcome) passed() bool { return o.verdict() <= figures.Missed }
