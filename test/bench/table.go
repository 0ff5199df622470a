package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// table is printed in the end.
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
			name = "" // a row is named once
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
		how += " This was a quick run; without -quick everything is repeated more often."
	}
	return fmt.Sprintf("%s All servers are processes on this machine, over loopback, and each candidate "+
		"is a process; %d processors, %s.", how, runtime.NumCPU(), runtime.Version())
}
