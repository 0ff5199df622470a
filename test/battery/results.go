package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// results holds the outcomes of the rows.
type results struct {
	battery *battery
	jobs    []*job
	noise   string
}

func (r *results) passed() bool {
	for _, j := range r.jobs {
		if !j.passed() {
			return false
		}
	}
	return true
}

// print writes the three tables: rows, controls, figures.
func (r *results) print(out io.Writer, markdown bool) {
	figures.Print(out, markdown, []string{"row", "runs", "workers", "acts", "of an older token", "tokens not grown", "left over",
		"fault to the last act (max)", "from there to the next worker (min)", "fault to the next worker (min / median / p99 / max)", "bound", "verdict"}, r.rows())
	fmt.Fprintln(out)
	if lines := r.controls(); len(lines) > 0 {
		figures.Print(out, markdown, []string{"control", "in row", "what is left out", "what shows", "verdict"}, lines)
		fmt.Fprintln(out)
	}
	if lines := r.figures(); len(lines) > 0 {
		figures.Print(out, markdown, []string{"row", "measure", "measured", "bound", "verdict"}, lines)
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, r.conditions())
	fmt.Fprintln(out)
	for _, j := range r.jobs {
		if j.flaw == nil {
			fmt.Fprintf(out, "- %s: %s\n", j.row.name, j.row.title)
		}
	}
}

// explain writes the evidence of the runs that failed.
func (r *results) explain(log io.Writer) {
	for _, j := range r.jobs {
		fmt.Fprint(log, j.evidence)
	}
}

func (r *results) rows() [][]string {
	var lines [][]string
	for _, j := range r.jobs {
		if j.flaw != nil {
			continue
		}
		o := j.seen
		line := []string{j.row.name, strconv.Itoa(o.runs), strconv.Itoa(o.acts.Terms), strconv.Itoa(o.acts.Acts), strconv.Itoa(o.acts.Stale),
			strconv.Itoa(o.acts.Regressed), strconv.Itoa(o.orphans), "", "", "", "", o.verdict().String()}
		if len(o.next) > 0 {
			line[7], line[8] = figures.Show(o.last.Max()), figures.Show(o.idle.Min())
			line[9], line[10] = o.next.String(), figures.Show(r.battery.bound())
		}
		lines = append(lines, line)
	}
	return lines
}

func (r *results) controls() [][]string {
	var lines [][]string
	for _, j := range r.jobs {
		if j.flaw != nil {
			lines = append(lines, []string{j.flaw.name, j.row.name, j.flaw.left, shown(j.seen), figures.Safe(j.passed()).String()})
		}
	}
	return lines
}

// shown returns a text that lists the faults of an outcome.
func shown(o outcome) string {
	s := fmt.Sprintf("%d of %d acts of an older token", o.acts.Stale, o.acts.Acts)
	if o.acts.Overlap > 0 {
		s += ", up to " + figures.Show(o.acts.Overlap) + " after"
	}
	if o.acts.Regressed > 0 {
		s += fmt.Sprintf("; %d tokens not grown", o.acts.Regressed)
	}
	if o.orphans > 0 {
		s += fmt.Sprintf("; %d processes left over", o.orphans)
	}
	return s
}

func (r *results) figures() [][]string {
	var lines [][]string
	for _, j := range r.jobs {
		for _, f := range j.seen.figures {
			if j.flaw == nil {
				lines = append(lines, []string{j.row.name, f.what, f.value, f.bound, f.verdict.String()})
			}
		}
	}
	return lines
}

func (r *results) conditions() string {
	again := 0
	for _, j := range r.jobs {
		again += j.disturbed
	}
	return fmt.Sprintf("Lease %v, stop-within a fifth of it unless the row says otherwise, three candidates, up to %d runs side by side, each with %s; "+
		"workers act each millisecond; %d processors, %s. %d runs were played again, since a processor "+
		"stood still for more than a tenth of the lease and a promise was broken by that; their acts and tokens count. %s.",
		r.battery.lease, r.battery.players(), kinds[r.battery.store].title, runtime.NumCPU(), runtime.Version(), again, r.noise)
}
