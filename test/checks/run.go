package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// lastLane is the lane that starts when all others have ended.
const lastLane = "last"

// result is the outcome of a step.
type result struct {
	step
	outcome string // passed, failed, or why it did not finish
	took    time.Duration
	busy    time.Duration // the processor time of its commands
	log     string        // the file with its output
	replay  string        // the command in its output that reproduces the failure
	notice  string        // what a step that passed wants to be seen
	late    string        // what it waited for, if only its time was over
	first   string        // what its first run waited for, if this is the second
}

const passed = "passed"

// A runner runs steps, each with its output in a file below logs.
type runner struct {
	limit time.Duration // of one step
	logs  string
	mu    sync.Mutex // guards out
	out   io.Writer
	began time.Time
}

// run runs all steps and returns their results in the order of the steps.
func (r *runner) run(ctx context.Context, steps []step) []result {
	results := make([]result, len(steps))
	lanes, order := map[string][]int{}, []string{}
	for i, s := range steps {
		if lanes[s.lane] == nil {
			order = append(order, s.lane)
		}
		lanes[s.lane] = append(lanes[s.lane], i)
	}
	walk := func(lane string) {
		for _, i := range lanes[lane] {
			results[i] = r.one(ctx, steps[i])
		}
	}
	var wg sync.WaitGroup
	for _, lane := range order {
		if lane != lastLane {
			wg.Go(func() { walk(lane) })
		}
	}
	wg.Wait()
	walk(lastLane)
	r.again(ctx, results)
	return results
}

func (r *runner) one(ctx context.Context, s step) result {
	res := result{step: s, outcome: "not run", log: filepath.Join(r.logs, s.name+".log")}
	if ctx.Err() != nil {
		return res
	}
	r.say("started %s\n", s.name)
	start := time.Now()
	outcome, busy, err := r.outcome(ctx, s, res.log)
	res.outcome, res.busy, res.took = outcome, busy, time.Since(start)
	output, _ := os.ReadFile(res.log)
	res.replay, res.notice = after("replay: ", output), after("attention: ", output)
	if res.outcome != passed && ctx.Err() == nil {
		res.late = outOfTime(output, err)
	}
	if res.outcome == passed {
		r.say("passed  %s in %s, with %s of processor time\n%s", s.name, short(res.took), short(res.busy), output)
	} else {
		r.say("FAILED  %s after %s: %s; its output follows at the end\n", s.name, short(res.took), res.outcome)
	}
	return res
}

// outcome runs the commands of a step until one fails, with their output in a file. It also returns
// their processor time. The error is that of the command, or that the time of the step is over.
func (r *runner) outcome(ctx context.Context, s step, log string) (said string, busy time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err.Error(), 0, err
	}
	defer func() { _ = f.Close() }()
	for _, command := range s.commands {
		fmt.Fprintln(f, "$", command)
		took, err := bash(ctx, command, f)
		busy += took
		switch {
		case ctx.Err() == context.DeadlineExceeded:
			return fmt.Sprintf("not finished within %v", r.limit), busy, ctx.Err()
		case ctx.Err() != nil:
			return "interrupted", busy, ctx.Err()
		case err != nil:
			return err.Error(), busy, err
		}
	}
	return passed, busy, nil
}

// bash runs a command in a process group of its own, and kills what remains of the group. It
// returns the processor time of all its processes that have ended in order.
func bash(ctx context.Context, command string, out *os.File) (busy time.Duration, err error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	if cmd.Process != nil {
		// servers that a failed command left behind
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if ended := cmd.ProcessState; ended != nil {
		busy = ended.UserTime() + ended.SystemTime()
	}
	return busy, err
}

func (r *runner) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "[%s] ", short(time.Since(r.began)))
	fmt.Fprintf(r.out, format, args...)
}

// after returns the rest of the first line that begins with a word: "replay: " and the command that
// reproduces a failure, or "attention: " and a notice.
func after(word string, output []byte) string {
	for line := range bytes.Lines(output) {
		if rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte(word)); ok {
			return string(rest)
		}
	}
	return ""
}

func short(d time.Duration) string { return d.Round(time.Second).String() }
