package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/figures"
)

// experiment is implemented once for all sites. Its fields hold the differences between sites.
type experiment interface {
	about() about
	measure(t *trial)
}

// about describes an experiment. The note says where each measure begins and ends.
type about struct{ name, title, note string }

// row is an experiment at a site.
type row struct {
	site *site
	experiment
}

func (r row) name() string {
	return strings.TrimPrefix(r.site.name+"-"+r.about().name, "-")
}

func (r row) title() string { return r.site.title + ": " + r.about().title }

func rows() (all []row) {
	for _, s := range sites() {
		for _, x := range s.rows() {
			all = append(all, row{s, x})
		}
	}
	return all
}

// choose returns the rows with these names, separated by commas. A name may end before a hyphen.
func choose(names string) ([]row, error) {
	if names == "" {
		return rows(), nil
	}
	var chosen []row
	for name := range strings.SplitSeq(names, ",") {
		found, known := 0, []string{}
		for _, r := range rows() {
			known = append(known, r.name())
			if r.name() == name || strings.HasPrefix(r.name(), name+"-") {
				chosen = append(chosen, r)
				found++
			}
		}
		if found == 0 {
			return nil, fmt.Errorf("there is no row %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// measure is one line of the table.
type measure struct {
	what, value, bound string
	verdict            figures.Verdict
	// others holds the figures of other implementations.
	others string
}

// none returns the line for an event that must never happen.
func none(what string, n, of int) measure {
	return measure{what: what, value: fmt.Sprintf("%d of %d", n, of), bound: "0",
		verdict: figures.Safe(n == 0)}
}

// timed returns the line for a distribution of times.
func timed(what string, d figures.Dist, b figures.Bound, others string) measure {
	m := measure{what: what, value: d.String(), bound: b.String(), others: others}
	if m.bound != "" {
		m.verdict = figures.Within(b.Holds(d))
	}
	return m
}

// judgedLine returns the line that says whether two led at once.
func judgedLine(label string, v witness.Verdict, others string) measure {
	return measure{what: label + "answers of yes after the next was elected", value: overlap(v),
		bound: "0", verdict: figures.Safe(v.Safe()), others: others}
}

// overlap formats a verdict.
func overlap(v witness.Verdict) string {
	s := fmt.Sprintf("%d of %d, in %d terms", v.Stale, v.Acts, v.Terms)
	if v.Overlap > 0 {
		s += ", up to " + figures.Show(v.Overlap) + " after"
	}
	if v.Regressed > 0 {
		s += fmt.Sprintf(", %d terms not above the last", v.Regressed)
	}
	return s
}

// controlled returns the line for a planted mistake, which must be found. It calls play again if a
// busy machine may have hidden the overlap.
func controlled(what string, play func() witness.Verdict) measure {
	var sum witness.Verdict
	for try := 0; try < 5 && sum.Stale == 0; try++ {
		sum = sum.Plus(play())
	}
	return measure{what: "control: " + what, value: overlap(sum), bound: "more than 0",
		verdict: figures.Safe(sum.Stale > 0)}
}

// elections formats a number of elections; 0 means one.
func elections(n int) string {
	if n <= 1 {
		return "one election"
	}
	return fmt.Sprintf("%d elections", n)
}

// table is the result of all rows.
type table struct {
	quick   bool
	results []result
}

type result struct {
	row   row
	found []measure
	noise string
}

func (t *table) worst() figures.Verdict {
	w := figures.None
	for _, r := range t.results {
		for _, m := range r.found {
			w = max(w, m.verdict)
		}
	}
	return w
}

func (t *table) print(out io.Writer, markdown bool) {
	var cells [][]string
	for _, r := range t.results {
		name := r.row.name()
		for _, m := range r.found {
			cells = append(cells, []string{name, m.what, m.value, m.bound, m.verdict.String(), m.others})
			name = "" // only the first line of a row has its name
		}
	}
	columns := []string{"row", "measure", "measured", "bound", "verdict", "others"}
	figures.Print(out, markdown, columns, cells)
	fmt.Fprintf(out, "\n%s\n\n", t.conditions())
	for _, r := range t.results {
		fmt.Fprintf(out, "- %s: %s. %s. %s.\n", r.row.name(), r.row.title(), r.row.about().note, r.noise)
	}
}

func (t *table) conditions() string {
	how := "Distributions are min / median / p99 / max."
	if t.quick {
		how += " This was a quick run: everything is repeated less often, and Kafka is kfake in the " +
			"process of the bench unless -brokers was set."
	}
	return fmt.Sprintf("%s The work of leaders asks every 2 ms whether it may act, and stamps each "+
		"question before it asks. Counted are answers of yes whose stamp is later than the next "+
		"leader's entry into lead; the time is from that entry to the last of them. Work that goes by "+
		"memory goes by a flag, which follows within 50 ms what it hears of leaders. All servers are "+
		"processes on this machine, over loopback, and each candidate is a process; %d processors, %s.",
		how, runtime.NumCPU(), runtime.Version())
}
