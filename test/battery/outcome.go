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
	// last is the time from a fault to the last act of the old worker, next the time to the first
	// act of the next worker, and idle the time between the two acts.
	last, next, idle figures.Dist
	orphans          int      // remaining processes
	leftovers        int      // those of them that a tenure left when it ended in order
	wrong            []string // broken promises except those of acts; orphans are included
	late             []string // events that took longer than they should
	figures          []figure
	errs             []error       // of runs that could not be played
	stood            time.Duration // the longest time for which a processor stood still
}

// figure is a measure that only some rows have.
type figure struct {
	what, value, bound string
	verdict            figures.Verdict
}

// plus returns the sum of two outcomes.
func (o outcome) plus(p outcome) outcome {
	return outcome{
		acts:    o.acts.Plus(p.acts),
		runs:    o.runs + p.runs,
		last:    append(o.last, p.last...),
		next:    append(o.next, p.next...),
		idle:    append(o.idle, p.idle...),
		orphans: o.orphans + p.orphans, leftovers: o.leftovers + p.leftovers,
		wrong:   append(o.wrong, p.wrong...),
		late:    append(o.late, p.late...),
		figures: append(o.figures, p.figures...),
		errs:    append(o.errs, p.errs...),
		stood:   max(o.stood, p.stood),
	}
}

// verdict returns the worst verdict on any part of the outcome.
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

// disturbed reports whether the run was safe, but a processor stood still for so long that a lease
// may have expired, or that a guard and its command on that processor did nothing. Nothing excuses
// faults of acts and tokens, nor processes that a tenure leaves when it ends in order, which has no
// deadline. Other remaining processes are excused only if another run leaves none.
func (o outcome) disturbed(lease time.Duration) bool {
	return o.acts.Safe() && o.leftovers == 0 && o.stood > lease/10
}

// excused returns the outcome with broken promises counted as late. If the machine stood still, a
// leader may have lost its lease, and could not keep the promises of a leader.
func (o outcome) excused() outcome {
	o.late, o.wrong = append(o.late, o.wrong...), nil
	return o
}

// passed reports whether every promise was kept. Bounds on time depend on other work of the
// machine, so a missed bound does not fail a row.
func (o outcome) passed() bool { return o.verdict() <= figures.Missed }
