package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// summary sums up the outcomes of one kind of strike.
type summary struct {
	runs, next int          // next is the number of runs with a next leader
	unsettled  int          // attempts that were given up before the strike
	took       figures.Dist // of those
	stale      int          // runs with a stale answer
	longest    time.Duration
}

func (r *result) summary(what strike) (s summary) {
	for _, o := range r.outcomes {
		switch {
		case o.what != what:
			continue
		case o.unsettled:
			s.unsettled++
			continue
		}
		s.runs++
		if o.next {
			s.next++
			s.took = append(s.took, o.took)
		}
		if o.Stale > 0 {
			s.stale++
			s.longest = max(s.longest, o.Overlap)
		}
	}
	return s
}

// inLeases shows the times to the next leader.
func (s summary) inLeases(lease time.Duration) string {
	if s.next == 0 {
		return "no next leader"
	}
	show := func(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()/lease.Seconds()) }
	text := fmt.Sprintf("%s (%s to %s)", show(s.took.Median()), show(s.took.Min()), show(s.took.Max()))
	if s.next < s.runs {
		text += fmt.Sprintf(", none in %d of %d", s.runs-s.next, s.runs)
	}
	return text + s.given()
}

// inTime shows the median.
func (s summary) inTime() string {
	if s.next == 0 {
		return "no next leader"
	}
	return figures.Show(s.took.Median()) + s.given()
}

// given says how many runs were given up.
func (s summary) given() string {
	if s.unsettled == 0 {
		return ""
	}
	return fmt.Sprintf("; unsettled in %d", s.unsettled)
}

const notMeasured = "not measured"

// twice shows in how many runs two answered yes.
func (s summary) twice() string {
	switch {
	case s.runs == 0:
		return notMeasured
	case s.next == 0:
		return "no next leader"
	case s.stale == 0:
		return fmt.Sprintf("0 of %d", s.next) + s.given()
	}
	return fmt.Sprintf("**%d of %d**", s.stale, s.next) + s.given()
}

var columns = []string{"store", "election by", "crash to next leader, in leases", "hand-over",
	"frozen: stale yes in", "cut off: stale yes in", "for up to", "sends/min", "goroutines", "heap each", "lines"}

// cells returns the line of a peer.
func (r *result) cells() []string {
	crashed, handed, frozen, severed := r.summary(crash), r.summary(handOver), r.summary(freeze), r.summary(cut)
	longest, requests := "", fmt.Sprintf("%.0f", r.requests)
	if r.direct {
		requests = notMeasured
	}
	if severed.stale > 0 {
		longest = figures.Show(severed.longest)
	}
	return []string{
		r.store, r.name, crashed.inLeases(r.lease), handed.inTime(), frozen.twice(), severed.twice(), longest,
		requests, fmt.Sprintf("%d for %d", r.crowd.goroutines, r.crowd.elections),
		fmt.Sprintf("%.1f KB", r.crowd.bytes/1024), fmt.Sprint(r.lines()),
	}
}

// publish prints the table, and writes the files. It fails if a measurement failed, or if an answer
// of Tenure was stale.
func publish(o options, results []*result, out io.Writer) error {
	var cells [][]string
	var failures []error
	for _, r := range results {
		cells = append(cells, r.cells())
		failures = append(failures, r.fault())
	}
	figures.Print(out, false, columns, cells)
	if o.markdown != "" {
		var text strings.Builder
		figures.Print(&text, true, columns, cells)
		failures = append(failures, os.WriteFile(o.markdown, []byte(text.String()), 0o600))
	}
	if o.svg != "" {
		failures = append(failures, os.WriteFile(o.svg, []byte(plot(results)), 0o600))
	}
	return errors.Join(failures...)
}

// fault returns an error if a measurement failed. Stale answers are a fault of Tenure alone: those
// of others are results.
func (r *result) fault() error {
	failures := r.failures
	for _, what := range strikes {
		if s := r.summary(what); s.stale > 0 && r.name == tenureName {
			failures = append(failures, fmt.Errorf("%s: two led in %d of %d runs", what, s.stale, s.runs))
		}
	}
	if len(failures) == 0 {
		return nil
	}
	return fmt.Errorf("%s on %s: %w", r.name, r.store, errors.Join(failures...))
}
