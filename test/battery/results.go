package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// results holds the outcomes of the rows.
type results struct {
	battery *battery
	jobs    []*job
	noise   string
}

func (r *results) passed() bool {
	for _, j := range r.jobs {
		if !j.passed() {
			return false
		}
	}
	return true
}

// print writes the three tables: rows, controls, figures.
func (r *results) print(out io.Writer, markdown bool) {
	figures.Print(out, markdown, []string{"row", "runs", "workers", "acts", "of an older token", "tokens not grown", "left over",
		"fault to the last act (max)", "from there to the next worker (min)", "fault to the next worker (min / median / p99 / max)", "bound", "verdict"}, r.rows())
	fmt.Fprintln(out)
	if lines := r.controls(); len(lines) > 0 {
		figures.Print(out, markdown, []string{"control", "in row", "what is left out", "what shows", "verdict"}, lines)
		fmt.Fprintln(out)
	}
	if lines := r.figures(); len(lines) > 0 {
		figures.Print(out, markdown, []string{"row", "measure", "measured", "bound", "verdict"}, lines)
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, r.conditions())
	fmt.Fprintln(out)
	for _, j := range r.jobs {
		if j.flaw == nil {
			fmt.Fprintf(out, "- %s: %s\n", j.row.name, j.row.title)
		}
	}
}

// explain writes the evidence of the runs that failed.
func (r *results) explain(log io.Writer) {
	for _, j := range r.jobs {
		fmt.Fprint(log, j.evidence)
	}
}

func (r *results) rows() [][]string {
	var lines [][]string
	for _, j := range r.jobs {
		if j.flaw != nil {
			continue
		}
		o := j.seen
		line := []string{j.row.name, strconv.Itoa(o.runs), strconv.Itoa(o.acts.Terms), strconv.Itoa(o.acts.Acts), strconv.Itoa(o.acts.Stale),
			strconv.Itoa(o.acts.Regressed), strconv.Itoa(o.orphans), "", "", "", "", o.verdict().String()}
		if len(o.next) > 0 {
			line[7], line[8] = figures.Show(o.last.Max()), figures.Show(o.idle.Min())
			line[9], line[10] = o.next.String(), figures.Show(r.battery.bound(j.row))
		}
		lines = append(lines, line)
	}
	return lines
}

func (r *results) controls() [][]string {
	var lines [][]string
	for _, j := range r.jobs {
		if j.flaw != nil {
			lines = append(lines, []string{j.flaw.name, j.row.name, j.flaw.left, shown(j.seen), figures.Safe(j.passed()).String()})
		}
	}
	return lines
}

// shown returns a text that lists the faults of an outcome.
func shown(o outcome) string {
	s := fmt.Sprintf("%d of %d acts of an older token", o.acts.Stale, o.acts.Acts)
	if o.acts.Overlap > 0 {
		s += ", up to " + figures.Show(o.acts.Overlap) + " after"
	}
	if o.acts.Regressed > 0 {
		s += fmt.Sprintf("; %d tokens not grown", o.acts.Regressed)
	}
	if o.orphans > 0 {
		s += fmt.Sprintf("; %d processes left over", o.orphans)
	}
	return s
}

func (r *results) figures() [][]string {
	var lines [][]string
	for _, j := range r.jobs {
		for _, f := range j.seen.figures {
			if j.flaw == nil {
				lines = append(lines, []string{j.row.name, f.what, f.value, f.bound, f.verdict.String()})
			}
		}
	}
	return lines
}

func (r *results) conditions() string {
	again, histories, traces := 0, 0, 0
	var on []string
	for _, j := range r.jobs {
		again += j.disturbed
		histories, traces = histories+j.seen.histories, traces+j.seen.traces
		if title := j.row.kind().Title; !slices.Contains(on, title) {
			on = append(on, title)
		}
	}
	return fmt.Sprintf("Lease %v, stop-within a fifth of it unless the row says otherwise, three candidates, up to %d runs side by side, each with %s; "+
		"workers act each millisecond, those of agents every 5 ms; %d processors, %s. %d runs were played again, since a thread "+
		"waited for a processor for more than a tenth of the lease and a promise was broken by that; their acts and tokens count. "+
		"test/history judged %d journals, and %d traces were replayed and checked. %s.",
		r.battery.lease, r.battery.players(), strings.Join(on, ", or "), runtime.NumCPU(), runtime.Version(), again, histories, traces, r.noise)
}

// The limits of the shown parts of the journal and of each log.
const (
	tailRecords = 60
	tailBytes   = 8 << 10
)

// evidence returns a text that helps to find out why a run failed. The end says most, since long
// logs are often cut off at the beginning: first the end of each log, then the end of the journal,
// then the faults and their effects.
func (s *stage) evidence(o outcome) string {
	var text strings.Builder
	for _, c := range s.candidates {
		fmt.Fprintf(&text, "  %s says:\n    %s\n", c.id(), strings.ReplaceAll(tail(c.log()), "\n", "\n    "))
	}
	if s.watch != nil {
		records := s.watch.records.Since(0)
		fmt.Fprintf(&text, "  the journal ends with:\n%s", summary(records))
		fmt.Fprintf(&text, "  by time: %v\n", witness.ByTime(records))
		fmt.Fprintf(&text, "  by order: %v\n", witness.ByOrder(records))
	}
	s.mu.Lock()
	notes := slices.Clone(s.notes)
	s.mu.Unlock()
	fmt.Fprintf(&text, "  what happened, in seconds of CLOCK_MONOTONIC:\n    %s\n", strings.Join(notes, "\n    "))
	for _, fault := range o.unsafe {
		fmt.Fprintln(&text, "  UNSAFE:", fault)
	}
	for _, err := range o.errs {
		fmt.Fprintln(&text, "  error:", err)
	}
	fmt.Fprintf(&text, "  files: %s\n", s.dir)
	return text.String()
}

// summary shows successive acts of one worker and its children on one line.
func summary(records []witness.Record) string {
	same := func(r, q witness.Record) bool {
		return q.What == witness.Act && q.Token == r.Token && q.Root == r.Root && q.Candidate == r.Candidate
	}
	var lines []string
	for i := 0; i < len(records); {
		r, n := records[i], 1
		for r.What == witness.Act && i+n < len(records) && same(r, records[i+n]) {
			n++
		}
		line := fmt.Sprintf("    %.4f  token %d  c%d  process %d of %d: %v", seconds(r.At), r.Token, r.Candidate, r.PID, r.Root, r.What)
		if n > 1 {
			line += fmt.Sprintf(", and %d more of %d until %.4f", n-1, r.Root, seconds(records[i+n-1].At))
		}
		lines = append(lines, line)
		i += n
	}
	return strings.Join(lines[max(0, len(lines)-tailRecords):], "\n") + "\n"
}

// tail returns the end of a file, in whole lines.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return filepath.Base(path) + ": " + err.Error()
	}
	if len(text) > tailBytes {
		_, text, _ = bytes.Cut(text[len(text)-tailBytes:], []byte("\n"))
	}
	return strings.TrimRight(string(text), "\n")
}

// change is the bound of a graceful change of leader at the median, without the time that the
// worker itself takes to start.
const change = 15 * time.Millisecond

// takeovers measures the time from SIGTERM to the successor's first act. In the same run it
// measures the time from the start of a worker without tenure to its first act.
func (s *stage) takeovers() {
	var took, own figures.Dist
	for range pick(s.b, 20, 100) {
		s.settle()
		took = append(took, s.takeover())
		own = append(own, s.bare())
	}
	bound := change + own.Median()
	s.figure("SIGTERM to tenure, to the successor's first act", took.String(), "median "+figures.Show(bound), figures.Within(took.Median() <= bound))
	s.figure("start of the worker by itself, to its first act", own.String(), "", figures.None)
}

// takeover stops the leader and starts it again.
func (s *stage) takeover() time.Duration {
	c, old := s.leader()
	at := s.stopAndCheck(c)
	next := s.next(old)
	check(c.start())
	return time.Duration(next.began - at)
}

// bare starts a worker without tenure, with a journal of its own, and waits for its end.
func (s *stage) bare() time.Duration {
	path := filepath.Join(s.dir, "bare")
	check(os.RemoveAll(path))
	cmd := exec.CommandContext(s.b.ctx, s.b.worker, "-journal", path, "-life", "1ms")
	cmd.Env = environment(s.mark, "TENURE_TOKEN=1", "TENURE_ID=c0")
	crew.Separate(cmd)
	began := machine.Now()
	check(cmd.Run())
	r := must(witness.Follow(path))
	defer func() { _ = r.Close() }()
	records := must(r.Next())
	if len(records) == 0 {
		check(errors.New("the worker wrote nothing"))
	}
	return time.Duration(records[0].At - began)
}

// The limits of a follower: memory in bytes, and the share of a core.
const (
	// The aim is 15 MB. The driver of SQLite adds 0.7 MB to 14.5 MB.
	mostMemory = 16e6
	mostCPU    = 0.01
)

// usage is the usage of a process, or of several: memory, and processor time until now.
type usage struct {
	machine.Memory
	cpu time.Duration
}

// add adds the usage of a process.
func (u *usage) add(pid int) error {
	m, cpu, err := machine.Of(pid)
	u.Resident, u.Proportional, u.Anonymous = u.Resident+m.Resident, u.Proportional+m.Proportional, u.Anonymous+m.Anonymous
	u.cpu += cpu
	return err
}

// footprint measures tenure and guard of a follower. The follower runs a copy of the binary.
// Otherwise it would share pages with the other candidates, which in production run on other
// machines.
func (s *stage) footprint() {
	binary := filepath.Join(s.dir, "tenure")
	check(copyFile(binary, s.tenure))
	s.hire(binary)
	s.sleep(5 * time.Second) // until the memory of the start is released
	window := pick(s.b, 10*time.Second, time.Minute)
	before := s.follower()
	s.sleep(window)
	s.weigh(before, s.follower(), window)
}

func (s *stage) weigh(before, after usage, window time.Duration) {
	mega := func(n uint64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
	s.figure("tenure and guard of a follower: proportional set size", mega(after.Proportional), "16 MB", figures.Within(after.Proportional <= mostMemory))
	s.figure("of these anonymous", mega(after.Anonymous), "", figures.None)
	s.figure("resident, where both count what they share", mega(after.Resident), "", figures.None)
	cpu := (after.cpu - before.cpu).Seconds() / window.Seconds()
	s.figure(fmt.Sprintf("processor, of one core over %v", window), fmt.Sprintf("%.2f %%", cpu*100), "1 %", figures.Within(cpu <= mostCPU))
}

// follower returns the usage of the candidate that was added last.
func (s *stage) follower() (u usage) {
	c := s.candidates[len(s.candidates)-1]
	check(u.add(c.PID()))
	check(u.add(c.awaitGuard()))
	return u
}

// copyFile lets the system copy. If this process wrote all of the file at once, the system would
// keep the file in large pages. A large page counts as used as a whole.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
