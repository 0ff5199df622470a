package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"time"

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
	machine.Together(cmd)
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
