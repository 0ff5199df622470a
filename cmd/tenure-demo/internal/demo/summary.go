package demo

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tenure-go/tenure/internal/units"
)

// end prints a table of the times of failovers, and the number of overlaps.
func (h *human) end(_ time.Time, s summary) {
	fmt.Fprintf(h.out, "\nAfter %v: %s, %s, %s.\n",
		s.lasted.Round(100*time.Millisecond), count(s.elections, "election"), s.terms(), count(s.failovers, "failover"))
	if s.failovers > 0 {
		h.table(s.rows)
		fmt.Fprintf(h.out, "%s\n", h.paint.with(dim, s.footnote()))
	}
	verdict, how := fmt.Sprintf("overlaps found: %d", s.overlaps), good
	if s.overlaps > 0 {
		how = alarm
	}
	fmt.Fprintf(h.out, "Acts checked: %d; %s\n", s.acts, h.paint.with(how, verdict))
}

func (s summary) footnote() string {
	if bounded(s.rows) {
		return footnote + "\n" + footnoteMost
	}
	return footnote
}

const footnoteMost = "most: least plus the longest time between two reads of a candidate that polls; the store's own time to answer is not included"

const footnote = "least: after a crash or pause until the lease ends, counted from the last renewal that the store saw; " +
	"after a release 0"

func (s summary) terms() string {
	switch s.elections {
	case 0:
		return "no term"
	case 1:
		return fmt.Sprintf("term #1 (%d)", s.first)
	}
	return fmt.Sprintf("terms #1 to #%d (%d to %d)", s.elections, s.first, s.last)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (h *human) table(rows []row) {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 3, ' ', tabwriter.AlignRight)
	bounded := bounded(rows)
	head := "  failover\tn\tmedian\tmax\tleast: median\tmax\t"
	if bounded {
		head += "most: median\tmax\t"
	}
	fmt.Fprintln(t, head)
	for _, r := range rows {
		fmt.Fprintf(t, "  %s\t%d\t", r.kind, r.n)
		cells := r.cells()
		if !bounded {
			cells = cells[:4]
		}
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
	}
	_ = t.Flush()
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(h.out, strings.TrimRight(line, " \n"))
	}
}

// bounded reports whether there is an upper bound for some failovers, as with a polled store.
func bounded(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.mostMax > 0 })
}

// cells returns the median and the maximum of the times that failovers took, of the least possible
// times, and of the longest possible times.
func (r row) cells() []string {
	c := make([]string, 6)
	if r.n == 0 {
		return c
	}
	c[0], c[1], c[2] = units.Seconds(r.median), units.Seconds(r.max), "unknown"
	if r.known {
		c[2], c[3] = units.Seconds(r.leastMedian), units.Seconds(r.leastMax)
	}
	if r.mostMax > 0 {
		c[4], c[5] = units.Seconds(r.mostMedian), units.Seconds(r.mostMax)
	}
	return c
}
