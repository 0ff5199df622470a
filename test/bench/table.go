package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// table is what is printed in the end.
type table struct {
	quick   bool
	results []result
}

// result is what became of a row.
type result struct {
	row   row
	found []measure
	noise string
}

func (t *table) add(r result) { t.results = append(t.results, r) }

func (t *table) worst() figures.Verdict {
	w := figures.None
	for _, r := range t.results {
		for _, m := range r.found {
			w = max(w, m.verdict)
		}
	}
	return w
}

var columns = []string{"row", "measure", "measured", "bound", "verdict", "nats-kv-leader-elect", "others"}

// cells are the lines of the table; a row is named once.
func (t *table) cells() [][]string {
	var all [][]string
	for _, r := range t.results {
		name := r.row.name
		for _, m := range r.found {
			all = append(all, []string{name, m.what, m.value, m.bound, m.verdict.String(), m.before, m.others})
			name = ""
		}
	}
	return all
}

func (t *table) print(out io.Writer, markdown bool) {
	figures.Print(out, markdown, columns, t.cells())
	fmt.Fprintln(out)
	fmt.Fprintln(out, t.conditions())
	fmt.Fprintln(out)
	for _, r := range t.results {
		fmt.Fprintf(out, "- %s: %s. %s. %s.\n", r.row.name, r.row.title, r.row.note, r.noise)
	}
}

func (t *table) conditions() string {
	how := "Distributions are min / median / p99 / max."
	if t.quick {
		how += " This was a quick run; without -quick everything is repeated more often."
	}
	return fmt.Sprintf("%s One NATS server process, file storage, one replica, but three of each in rows r3; for object storage one versitygw "+
		"over a directory; for Kafka three brokers, three copies, two of them needed; all over loopback; candidates are processes of their own; %d processors, %s.", how, runtime.NumCPU(), runtime.Version())
}
