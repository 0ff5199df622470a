package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

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
	check(u.add(must(c.guard())))
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
