// Package figures prints measurements: distributions, verdicts on values and their bounds, tables,
// and how late the machine woke a process meanwhile.
package figures

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// Dist is a sample of durations.
type Dist []time.Duration

// Quantile returns the smallest value that at least this part of the sample does not exceed, or 0
// if the sample is empty.
func (d Dist) Quantile(q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Min returns the smallest value.
func (d Dist) Min() time.Duration { return d.Quantile(0) }

// Median returns the value in the middle.
func (d Dist) Median() time.Duration { return d.Quantile(0.5) }

// P99 returns the value that at most one in a hundred exceeds.
func (d Dist) P99() time.Duration { return d.Quantile(0.99) }

// Max returns the largest value.
func (d Dist) Max() time.Duration { return d.Quantile(1) }

// Above counts the values above a bound.
func (d Dist) Above(bound time.Duration) int {
	n := 0
	for _, x := range d {
		if x > bound {
			n++
		}
	}
	return n
}

// String returns Min, Median, P99 and Max, and the size of the sample.
func (d Dist) String() string {
	return fmt.Sprintf("%s / %s / %s / %s, n=%d", Show(d.Min()), Show(d.Median()), Show(d.P99()), Show(d.Max()), len(d))
}

// Report gives the median and the P99 to a benchmark. The name is empty or ends with a hyphen.
func (d Dist) Report(b *testing.B, name string) {
	b.ReportMetric(float64(d.Median().Nanoseconds())/1e3, name+"p50-µs")
	b.ReportMetric(float64(d.P99().Nanoseconds())/1e3, name+"p99-µs")
}

// Show formats a duration with as many digits as are significant.
func Show(d time.Duration) string {
	switch a := d.Abs(); {
	case a >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case a >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case a >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	case a >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.0f us", float64(d)/1e3)
}

// Bound holds upper bounds of a distribution. 0 means no bound.
type Bound struct{ Median, P99, Max time.Duration }

// Holds reports whether a distribution keeps the bounds.
func (b Bound) Holds(d Dist) bool {
	return (b.Median == 0 || d.Median() <= b.Median) && (b.P99 == 0 || d.P99() <= b.P99) &&
		(b.Max == 0 || d.Max() <= b.Max)
}

// String names the bounds. It is empty if there are none.
func (b Bound) String() string {
	var all []string
	for _, x := range []struct {
		name string
		most time.Duration
	}{{"median", b.Median}, {"p99", b.P99}, {"max", b.Max}} {
		if x.most > 0 {
			all = append(all, x.name+" "+Show(x.most))
		}
	}
	return strings.Join(all, ", ")
}

// Print writes a table as Markdown or for a terminal. Each line has as many cells as there are
// columns.
func Print(out io.Writer, markdown bool, columns []string, lines [][]string) {
	if markdown {
		printMarkdown(out, columns, lines)
	} else {
		printPlain(out, columns, lines)
	}
}

func printPlain(out io.Writer, columns []string, lines [][]string) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, line := range append([][]string{columns}, lines...) {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	_ = w.Flush()
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
}

func printMarkdown(out io.Writer, columns []string, lines [][]string) {
	write := func(line []string) { fmt.Fprintf(out, "| %s |\n", strings.Join(line, " | ")) }
	write(columns)
	fmt.Fprintln(out, "|"+strings.Repeat(" --- |", len(columns)))
	for _, line := range lines {
		write(line)
	}
}

// Verdict says whether a value keeps its bound. A higher verdict is worse.
type Verdict int

// The verdicts.
const (
	None       Verdict = iota // the value has no bound
	Held                      //
	Missed                    // a bound on time is exceeded
	Unmeasured                // the measurement failed
	Broken                    // a promise of safety is broken
)

func (v Verdict) String() string {
	return [...]string{"", "ok", "MISSED", "UNMEASURED", "BROKEN"}[v]
}

// Within judges a bound on time.
func Within(ok bool) Verdict {
	if ok {
		return Held
	}
	return Missed
}

// Safe judges a promise of safety.
func Safe(ok bool) Verdict {
	if ok {
		return Held
	}
	return Broken
}

// Noise measures how late the machine wakes this process during a measurement. Every wait in an
// election is late by as much. Mostly, other threads have the processor. It sleeps on each
// processor, because one may be busier than the others, or get no time from a hypervisor.
type Noise struct {
	stop chan struct{}
	done sync.WaitGroup
	mu   sync.Mutex
	late Dist
}

// nap is the time of one sleep.
const nap = 5 * time.Millisecond

// Listen starts a measurement, which End ends.
func Listen() *Noise {
	n := &Noise{stop: make(chan struct{})}
	for _, processor := range processors() {
		n.done.Go(func() { n.run(processor) })
	}
	return n
}

func (n *Noise) run(processor int) {
	defer stay(processor)()
	var late Dist
	for {
		select {
		case <-n.stop:
			n.mu.Lock()
			defer n.mu.Unlock()
			n.late = append(n.late, late...)
			return
		default:
			began := time.Now()
			sleep(nap)
			late = append(late, time.Since(began)-nap)
		}
	}
}

// End ends the measurement and returns the result as a sentence.
func (n *Noise) End() string {
	close(n.stop)
	n.done.Wait()
	return fmt.Sprintf("Meanwhile a timer in an idle process was late by %s (median), %s (p99), %s (max); the load average was %s",
		Show(n.late.Median()), Show(n.late.P99()), Show(n.late.Max()), load())
}

// Worst returns the longest delay on any processor. Call it after End.
func (n *Noise) Worst() time.Duration { return n.late.Max() }

// load returns the load average of the last minute.
func load() string {
	said, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(said), " ")
	return first
}
