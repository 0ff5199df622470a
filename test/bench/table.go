package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
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

func (t *table) worst() verdict {
	w := none
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
	if markdown {
		t.markdown(out)
	} else {
		t.plain(out)
	}
	fmt.Fprintln(out)
	fmt.Fprintln(out, t.conditions())
	fmt.Fprintln(out)
	for _, r := range t.results {
		fmt.Fprintf(out, "- %s: %s. %s. %s.\n", r.row.name, r.row.title, r.row.note, r.noise)
	}
}

func (t *table) plain(out io.Writer) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, line := range append([][]string{columns}, t.cells()...) {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	_ = w.Flush()
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
}

func (t *table) markdown(out io.Writer) {
	write := func(line []string) { fmt.Fprintf(out, "| %s |\n", strings.Join(line, " | ")) }
	write(columns)
	fmt.Fprintln(out, "|"+strings.Repeat(" --- |", len(columns)))
	for _, line := range t.cells() {
		write(line)
	}
}

func (t *table) conditions() string {
	how := "Distributions are min / median / p99 / max."
	if t.quick {
		how += " This was a quick run; without -quick everything is repeated more often."
	}
	return fmt.Sprintf("%s One NATS server process, file storage, one replica, and for object storage one versitygw "+
		"over a directory, over loopback; candidates are processes of their own; %d processors, %s.", how, runtime.NumCPU(), runtime.Version())
}
