package metrics

import (
	"bufio"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sample is one value of a metric.
type Sample struct {
	*Definition
	// Election is the name of the election; empty in a summary, and where Scope is Process.
	Election string
	// Job is the name of the job; empty in a summary, and where there is no JobKey.
	Job string
	// Value and Value2 are the values of Label and Label2.
	Value, Value2 string
	// Since is when a Counter or a Histogram began to count, from 0.
	Since time.Time
	// Number is the value of a Gauge or a Counter.
	Number float64
	// Distribution is the value of a Histogram, otherwise nil.
	Distribution *Distribution
}

// Distribution holds the observations of a Histogram.
type Distribution struct {
	// Counts has one number for each bucket: the observations up to its bound and above the
	// previous one. The last bucket has those above all Bounds.
	Counts []uint64
	// Sum is the sum of all observations, in Unit.
	Sum float64
}

// Gather yields a sample for each metric, election, job and value of a label, also if its number is
// 0.
// The samples of one metric follow one another. Before the first, Gather reads the clock for each
// election, so tenure_leading is right at that moment.
func (s *Set) Gather(yield func(Sample)) {
	all, total := s.collect()
	for _, d := range definitions {
		switch {
		case d.Scope == Process:
			gather(yield, d, "", total)
		case d.Scope == Election || !s.summary:
			for _, r := range all {
				gather(yield, d, r.name, r)
			}
		}
	}
	s.gatherJobs(yield)
	s.gatherAgent(yield)
	s.gatherCalls(yield)
}

func (s *Set) gatherJobs(yield func(Sample)) {
	all := s.collectJobs()
	for _, d := range jobDefinitions {
		if d.Scope == Detail && s.summary {
			continue
		}
		for _, r := range all {
			d.readJob(r, func(value string, number float64) {
				yield(Sample{Definition: d, Election: r.election, Job: r.job, Value: value, Since: r.since, Number: number})
			})
		}
	}
}

func gather(yield func(Sample), d *Definition, election string, r *reading) {
	d.read(r, func(value string, number float64) {
		yield(Sample{Definition: d, Election: election, Value: value, Since: r.since, Number: number})
	})
}

func (s *Set) gatherCalls(yield func(Sample)) {
	for i, op := range operations {
		for j, outcome := range outcomes {
			n := float64(s.calls[i][j].Load())
			yield(Sample{Definition: &calls, Value: op, Value2: outcome, Since: s.since, Number: n})
		}
	}
	for i, op := range operations {
		yield(Sample{Definition: &callDuration, Value: op, Since: s.since, Distribution: s.took[i].distribution()})
	}
}

// reading is the state of all elections of one Recorder.
type reading struct {
	*Recorder
	roles         [len(roles)]int
	term          uint64
	lease, margin time.Duration
	overdue       int
	unhealthy     int
}

// collect reads the states of all elections. It returns them in the order of their names, and total
// with the number of each role.
func (s *Set) collect() (all []*reading, total *reading) {
	s.mu.Lock()
	members := slices.Collect(maps.Keys(s.members))
	readings := make(map[*Recorder]*reading, len(s.byName))
	for _, r := range s.byName {
		readings[r] = &reading{Recorder: r}
	}
	s.mu.Unlock()
	total = &reading{Recorder: &Recorder{set: s, since: s.since}}
	for _, m := range members { // their states are read without the lock
		if state, ok := m.state(); ok {
			readings[m.Recorder].add(&state)
			total.roles[state.Role]++
		}
	}
	all = slices.SortedFunc(maps.Values(readings), func(a, b *reading) int { return strings.Compare(a.name, b.name) })
	return all, total
}

func (r *reading) add(s *State) {
	r.roles[s.Role]++
	r.term = max(r.term, s.Term)
	r.lease, r.margin = max(r.lease, s.Lease), max(r.margin, s.Margin)
	if s.Overdue {
		r.overdue++
	}
	if s.Unhealthy {
		r.unhealthy++
	}
}

// leading returns how many of the elections this process leads: at most one, except in a summary.
func (r *reading) leading() int { return r.roles[Leading] }

// TextType is the Content-Type of WriteText.
const TextType = "text/plain; version=0.0.4; charset=utf-8"

// WriteText writes all samples in the text format of Prometheus, version 0.0.4. Use it to serve
// metrics without a library; a program that has client_golang uses package metrics/tenureprom. The
// error is that of the Writer.
func (s *Set) WriteText(to io.Writer) error {
	w := textWriter{Writer: bufio.NewWriter(to)}
	s.Gather(w.sample)
	return w.Flush()
}

// textWriter writes samples. Its errors show in Flush.
type textWriter struct {
	*bufio.Writer
	last *Definition
}

// escaped are the characters that have a meaning in the value of a label.
var escaped = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

var kindNames = [...]string{Gauge: "gauge", Counter: "counter", Histogram: "histogram"}

func (w *textWriter) sample(s Sample) {
	if w.last != s.Definition {
		w.last = s.Definition
		w.all("# HELP ", s.Name, " ", s.Help, "\n# TYPE ", s.Name, " ", kindNames[s.Kind], "\n")
	}
	if s.Kind != Histogram {
		w.line(&s, "", "", s.Number)
		return
	}
	var n uint64
	for i, count := range s.Distribution.Counts {
		n += count
		le := "+Inf"
		if i < len(s.Bounds) {
			le = number(s.Bounds[i])
		}
		w.line(&s, "_bucket", le, float64(n))
	}
	w.line(&s, "_sum", "", s.Distribution.Sum)
	w.line(&s, "_count", "", float64(n))
}

// line writes one value. A bucket has its bound in the label le.
func (w *textWriter) line(s *Sample, suffix, le string, value float64) {
	w.all(s.Name, suffix)
	separator := "{"
	for _, l := range [...][2]string{{s.Key, s.Election}, {s.JobKey, s.Job}, {s.Label, s.Value}, {s.Label2, s.Value2}, {"le", le}} {
		if l[0] == "" || l[0] == "le" && le == "" {
			continue
		}
		w.all(separator, l[0], `="`, escaped.Replace(l[1]), `"`)
		separator = ","
	}
	if separator == "," {
		w.all("}")
	}
	w.all(" ", number(value), "\n")
}

func (w *textWriter) all(parts ...string) {
	for _, p := range parts {
		_, _ = w.WriteString(p)
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
