package main

import (
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// outcome is what came of one or more runs of a row.
type outcome struct {
	judgement
	runs int
	// last is from a fault to the last act of whom it befell, next to the first act of the next worker, idle from the one to the other.
	last, next, idle figures.Dist
	orphans          int      // processes left over
	wrong            []string // promises broken other than by acts, orphans among them
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
		judgement: o.judgement.plus(p.judgement),
		runs:      o.runs + p.runs,
		last:      append(o.last, p.last...),
		next:      append(o.next, p.next...),
		idle:      append(o.idle, p.idle...),
		orphans:   o.orphans + p.orphans,
		wrong:     append(o.wrong, p.wrong...),
		figures:   append(o.figures, p.figures...),
		errs:      append(o.errs, p.errs...),
		stood:     max(o.stood, p.stood),
	}
}

// verdict is the worst there is to say.
func (o outcome) verdict() figures.Verdict {
	v := figures.Safe(o.safe() && len(o.wrong) == 0)
	for _, f := range o.figures {
		v = max(v, f.verdict)
	}
	if len(o.errs) > 0 {
		v = max(v, figures.Unmeasured)
	}
	return v
}

// disturbed reports whether it is the machine's fault that something came late or a lease ran out. It is not to blame for acts, tokens and
// what is left over.
func (o outcome) disturbed(lease time.Duration) bool {
	return o.safe() && o.orphans == 0 && o.stood > lease/10
}

// passed reports whether everything that was promised was kept. Bounds on figures depend on what else the machine does, and count if strict.
func (o outcome) passed(strict bool) bool {
	v := o.verdict()
	return v <= figures.Held || v == figures.Missed && !strict
}
