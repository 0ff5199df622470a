package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"text/tabwriter"
)

// hunted is a bug and what became of it.
type hunted struct {
	bug
	verdict
	err error
}

// partOf returns every Nth bug from the Kth on, for a part "K/N"; all bugs for "".
func partOf(bugs []bug, part string) ([]bug, error) {
	if part == "" {
		return bugs, nil
	}
	var k, n int
	if _, err := fmt.Sscanf(part, "%d/%d", &k, &n); err != nil || k < 0 || n < 1 {
		return nil, fmt.Errorf("-part %q: want K/N, such as 0/3", part)
	}
	var some []bug
	for i := k % n; i < len(bugs); i += n {
		some = append(some, bugs[i])
	}
	return some, nil
}

// huntAll runs bugs, one on each core.
func huntAll(bugs []bug, seeds uint64) []hunted {
	all := make([]hunted, len(bugs))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i := range bugs {
		free <- struct{}{}
		wg.Go(func() {
			all[i].bug = bugs[i]
			all[i].verdict, all[i].err = bugs[i].hunt(seeds, true)
			<-free
		})
	}
	wg.Wait()
	return all
}

// listBugs prints what became of every bug, and fails if one that can be found was not.
func listBugs(o *options) int {
	bugs, err := partOf(planted, o.part)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	all := huntAll(bugs, o.seeds)
	if o.mark {
		writeMarkdown(os.Stdout, all)
	} else {
		writeTable(os.Stdout, all)
	}
	status := 0
	for _, h := range all {
		if h.err != nil {
			fmt.Fprintln(os.Stderr, h.err)
		}
		if h.err != nil || h.found() == (h.Note != "") {
			status = 1
		}
	}
	return status
}

func (v *verdict) found() bool { return v.Fault != "" }

// where says in which seed a bug is found first; some are in no single one, but in the sum of all.
func (v *verdict) where() string {
	switch {
	case !v.found():
		return "-"
	case v.Failed == 0:
		return "sum"
	}
	return fmt.Sprint(v.First)
}

func writeTable(out io.Writer, all []hunted) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "bug\trule\tfirst\tseeds\tled\tfault")
	for _, h := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d/%d\t%.1f %%\t%s\n", h.Name, h.Rule, h.where(), h.Failed, h.Ran, 100*h.Led, h.Fault)
	}
	_ = t.Flush()
}

const preface = `# Planted bugs

Every rule of the protocol that can be left out is left out here once, and the simulation must notice. "first" is the first
seed that does, of the %d that are standard; "seeds" is how many of them do. A bug is a change to the text of the source
that ` + "`go build -overlay`" + ` applies; the source itself knows nothing of it. To see one at work:

    go run ./internal/sim -bug NAME -seed FIRST -v

This page is written by ` + "`go run ./internal/sim -bugs -markdown`" + `, which also fails if one that is listed as found is not, or the other way round.

| bug | rule | what is left out | first | seeds | what happens |
|---|---|---|---|---|---|
`

func writeMarkdown(out io.Writer, all []hunted) {
	fmt.Fprintf(out, preface, standard)
	for _, h := range all {
		if h.Note == "" {
			fmt.Fprintln(out, h.row(), cell(fault(h.Fault)), "|")
		}
	}
	fmt.Fprint(out, "\n## Not found, and why\n\n| bug | rule | what is left out | why nothing happens |\n|---|---|---|---|\n")
	for _, h := range all {
		if h.Note != "" {
			fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", h.Name, h.Rule, cell(h.Left), cell(h.Note))
		}
	}
}

// row is what the test holds the page to; it ends before what happens.
func (h *hunted) row() string {
	return fmt.Sprintf("| `%s` | %s | %s | %s | %d |", h.Name, h.Rule, cell(h.Left), h.where(), h.Failed)
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// fault without the time at which it came.
func fault(s string) string {
	if _, what, ok := strings.Cut(s, ": "); ok && strings.HasPrefix(s, "at ") {
		return what
	}
	return s
}
