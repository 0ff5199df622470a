package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/internal/trace"
	"github.com/tenure-go/tenure/internal/trace/rules"
)

// historyPackage judges journals and traces. It shares no code with the witness.
const historyPackage = "github.com/tenure-go/tenure/test/history"

// second judges a run once more, by means other than the witness.
func (s *stage) second(o *outcome) {
	if s.row.cron != nil && s.control { // there, the flaw shows in the ticks
		return
	}
	traces, err := filepath.Glob(filepath.Join(s.dir, "*.trace"))
	said, faulty, failed := s.history(traces)
	if err = errors.Join(err, failed); err != nil {
		o.errs = append(o.errs, err)
		return
	}
	o.histories++
	switch {
	case s.control && faulty == o.acts.Safe():
		o.unsafe = append(o.unsafe, fmt.Sprintf("the witness says %v, and test/history: %s", o.acts, said))
	case !s.control && faulty:
		o.unsafe = append(o.unsafe, "test/history: "+said)
	}
	if err := checkTraces(traces); err != nil {
		o.unsafe = append(o.unsafe, "the traces: "+err.Error())
	}
	o.traces += len(traces)
}

// history lets the program judge.
func (s *stage) history(traces []string) (said string, faulty bool, err error) {
	var args []string
	if s.row.agent {
		args = append(args, "-asks")
	}
	if s.row.cron != nil {
		args = append(args, "-jobs")
	}
	text, err := exec.Command(s.b.judge, slices.Concat(args, []string{s.journal()}, traces)...).CombinedOutput()
	said = strings.TrimSpace(string(text))
	if code := (*exec.ExitError)(nil); errors.As(err, &code) && code.ExitCode() == 1 {
		return said, true, nil
	}
	if err != nil {
		err = fmt.Errorf("test/history: %w: %s", err, said)
	}
	return said, false, err
}

// checkTraces replays the traces of the members of one election, and checks them against the rules.
func checkTraces(names []string) error {
	files := map[string][]byte{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines, err := trace.Parse(strings.NewReader(string(text)))
		if err == nil {
			err = trace.Replay(lines)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files[name] = text
	}
	return rules.Check(files, time.Second)
}

// traceArgs returns the flags with which a new process of tenure run records a trace. Each has a
// file of its own. A control has none: its traces are of another build.
func (c *candidate) traceArgs() []string {
	s := c.stage
	if !s.b.traces || s.control || s.row.agent || s.row.cron != nil {
		return nil
	}
	c.starts++
	return []string{"--trace", filepath.Join(s.dir, fmt.Sprintf("%s-%d.trace", c.id(), c.starts))}
}
