package demo

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// end is a table of what failovers took, and the verdict.
func (h *human) end(_ time.Time, s summary) {
	fmt.Fprintf(h.out, "\nAfter %v: %s, %s, %s.\n",
		s.lasted.Round(100*time.Millisecond), count(s.elections, "election"), s.terms(), count(s.failovers, "failover"))
	if s.failovers > 0 {
		h.table(s.rows)
		fmt.Fprintf(h.out, "%s\n", h.paint.with(dim, footnote))
	}
	verdict, how := fmt.Sprintf("overlaps found: %d", s.overlaps), good
	if s.overlaps > 0 {
		how = alarm
	}
	fmt.Fprintf(h.out, "Acts checked: %d; %s\n", s.acts, h.paint.with(how, verdict))
}

const footnote = "least: after a crash or pause until the lease ends, counted from the last renewal that the store saw; " +
	"after a release 0"

func (s summary) terms() string {
	switch s.elections {
	case 0:
		return "no term"
	case 1:
		return fmt.Sprintf("term %d", s.first)
	}
	return fmt.Sprintf("terms %d to %d", s.first, s.last)
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
	fmt.Fprintf(t, "  failover\tn\tmedian\tmax\tleast: median\tmax\t\n")
	for _, r := range rows {
		if r.n == 0 {
			fmt.Fprintf(t, "  %s\t0\t\t\t\t\t\n", r.kind)
			continue
		}
		least, most := "unknown", ""
		if r.known {
			least, most = seconds(r.leastMedian), seconds(r.leastMax)
		}
		fmt.Fprintf(t, "  %s\t%d\t%s\t%s\t%s\t%s\t\n", r.kind, r.n, seconds(r.median), seconds(r.max), least, most)
	}
	_ = t.Flush()
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(h.out, strings.TrimRight(line, " \n"))
	}
}
