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
func (s *stage) takeovers() error {
	var took, own figures.Dist
	for range pick(s.b, 20, 100) {
		s.settle()
		d, err := s.takeover()
		if err != nil {
			return err
		}
		took = append(took, d)
		if d, err = s.bare(len(own)); err != nil {
			return err
		}
		own = append(own, d)
	}
	bound := change + own.Median()
	s.figure("SIGTERM to tenure, to the successor's first act", took.String(), "median "+figures.Show(bound), figures.Within(took.Median() <= bound))
	s.figure("start of the worker by itself, to its first act", own.String(), "", figures.None)
	return nil
}

// takeover stops the leader and starts it again.
func (s *stage) takeover() (time.Duration, error) {
	c, old, err := s.leader()
	if err != nil {
		return 0, err
	}
	at, err := s.stopAndCheck(c)
	if err != nil {
		return 0, err
	}
	next, err := s.next(old)
	if err != nil {
		return 0, err
	}
	return time.Duration(next.began - at), c.start()
}

// bare starts a worker without tenure, with a journal of its own, and waits for its end.
func (s *stage) bare(n int) (time.Duration, error) {
	path := filepath.Join(s.dir, "bare")
	if err := os.Remove(path); err != nil && n > 0 {
		return 0, err
	}
	cmd := exec.CommandContext(s.b.ctx, s.b.worker, "-journal", path, "-life", "1ms")
	cmd.Env = environment(s.mark, "TENURE_TOKEN=1", "TENURE_ID=c0")
	crew.Separate(cmd)
	began := machine.Now()
	if err := cmd.Run(); err != nil {
		return 0, err
	}
	r, err := witness.Follow(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()
	records, err := r.Next()
	if err != nil || len(records) == 0 {
		return 0, err
	}
	return time.Duration(records[0].At - began), nil
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
func (s *stage) footprint() error {
	binary := filepath.Join(s.dir, "tenure")
	if err := copyFile(binary, s.tenure); err != nil {
		return err
	}
	if err := s.hire(binary); err != nil {
		return err
	}
	s.sleep(5 * time.Second) // until the memory of the start is released
	window := pick(s.b, 10*time.Second, time.Minute)
	before, err := s.follower()
	if err != nil {
		return err
	}
	s.sleep(window)
	after, err := s.follower()
	if err != nil {
		return err
	}
	s.weigh(before, after, window)
	return nil
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
func (s *stage) follower() (u usage, err error) {
	c := s.candidates[len(s.candidates)-1]
	guard, err := c.guard()
	if err != nil {
		return u, err
	}
	return u, errors.Join(u.add(c.PID()), u.add(guard))
}

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
