//go:build integration && unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
)

// crontab is a line that all machines have.
type crontab struct {
	*home
	runs string // file with a line for each run
}

// newCrontab returns a line that was used before.
func newCrontab(t *testing.T) *crontab {
	t.Helper()
	c := &crontab{newHome(t), filepath.Join(t.TempDir(), "runs")}
	c.tick("node-0", "earlier", "exit 0", "--at-least-once").Run().Must(t, 0)
	must.OK(t, os.Remove(c.runs))
	return c
}

// tick returns a process that runs a script for the tick of a name. Its lease does not end within a
// test, unless the flags set another.
func (c *crontab) tick(id, name, script string, flags ...string) *program.Process {
	c.Helper()
	args := append(c.args("tick", "--id", id, "--tick", name, "--lease", "10m", "--renew", "300ms"), flags...)
	script = fmt.Sprintf("echo $TENURE_ID $TENURE_TICK $TENURE_ATTEMPT >>%s; %s", c.runs, script)
	return tenureRuns(c.T, append(args, "--", "sh", "-c", script)...).Process
}

// ran checks the lines of all runs.
func (c *crontab) ran(want ...string) {
	c.Helper()
	text, _ := os.ReadFile(c.runs) // without a run there is no file
	if got := strings.Fields(strings.ReplaceAll(string(text), " ", "/")); strings.Join(got, " ") != strings.Join(want, " ") {
		c.Errorf("it ran as %q, want %q", got, want)
	}
}

func TestTickRunsOnceOfThree(t *testing.T) {
	t.Parallel()
	c := newCrontab(t)
	all := map[string]*program.Process{}
	for _, id := range []string{"node-1", "node-2", "node-3"} {
		all[id] = c.tick(id, "t", "sleep 0.5; exit 7").Start()
	}
	runner := ""
	for id, p := range all {
		if r := p.Result(); r.Code == 7 {
			runner = id
		} else {
			r.Must(t, 0, `^billing: this tick ran on node-. from \S+Z to \S+Z: failed with exit code 7$`)
		}
	}
	c.ran(runner + "/t/1")
}

func TestTickIsLate(t *testing.T) {
	t.Parallel()
	c := newCrontab(t)
	c.tick("node-1", "t", "echo done").Run().Must(t, 0, "^done$")
	late := func(flags ...string) program.Result { return c.tick("node-2", "t", "echo done", flags...).Run() }
	late().Must(t, 0, "^billing: this tick ran on node-1 from .*: finished$")
	if r := late("--quiet"); r.Code != 0 || r.Out+r.Errs != "" {
		t.Errorf("it is not quiet: %+v", r)
	}
	var line tickJSON
	must.OK(t, json.Unmarshal([]byte(late("--json").Out), &line))
	if line.Event != "finished" || line.Election != "billing" || line.ID != "node-1" || line.Tick != "t" || line.Attempt != 1 || line.Term == 0 || line.Ended.IsZero() {
		t.Errorf("the object is %+v", line)
	}
	c.ran("node-1/t/1")
}

// TestTickByPeriod: the starts of two processes tell whether they are for the same tick.
func TestTickByPeriod(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	tick := func(flags ...string) program.Result {
		args := append(h.args("tick", "--period", "1h"), flags...)
		p := tenureRuns(t, append(args, "--", "sh", "-c", "echo $TENURE_TICK")...).Process
		p.Cmd.Env = append(p.Cmd.Env, "TENURE_TICK=of a tick that runs this process")
		return p.Run()
	}
	tick("--at-least-once").Must(t, 0, `^2\S+Z$`) // it is the first use
	tick().Must(t, 0, "^billing: this tick ran on ")
}

// TestTickIsInterrupted: the process that runs the tick is killed. Another one waits for its lease.
func TestTickIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("at least once ", again), func(t *testing.T) {
			t.Parallel()
			c := newCrontab(t)
			flags := []string{"--lease", "3s"}
			if again {
				flags = append(flags, "--at-least-once")
			}
			runner := c.tick("node-1", "t", "echo up; sleep 100", flags...).Start()
			runner.Says("up\n")
			other := c.tick("node-2", "t", "exit 7", flags...).Start()
			runner.Signal(syscall.SIGKILL)
			if r := other.Result(); again {
				r.Must(t, 7)
				c.ran("node-1/t/1", "node-2/t/2")
			} else {
				r.Must(t, 0, `^warning: billing: this tick began on node-1 at \S+, and was interrupted: it is not run again$`)
				c.ran("node-1/t/1")
			}
		})
	}
}

// TestTickOverlaps: another tick comes due during a run.
func TestTickOverlaps(t *testing.T) {
	t.Parallel()
	c := newCrontab(t)
	first := c.tick("node-1", "a", "trap 'exit 3' TERM; "+loop).Start()
	first.Says("up\n")
	c.tick("node-2", "b", "exit 0").Run().Must(t, 122, "^error: the command was not run: an earlier tick, a, is still running on node-1$")
	queued := c.tick("node-2", "b", "exit 5", "--queue", "--wait", "1h").Start()
	asked := c.tick("node-3", "a", "exit 0", "--log-level", "info").Start()
	asked.Says("another machine runs this tick")
	asked.Stops(122) // it cannot say whether the tick runs to its end
	first.Stops(3)
	queued.Ends(5)
	c.tick("node-3", "a", "exit 0").Run().Must(t, 0, "^billing: this tick ran on node-1 from .*: failed with exit code 3$")
	c.ran("node-1/a/1", "node-2/b/1")
}

// TestTickIsPaused: the process that runs the tick stands still for longer than its lease.
func TestTickIsPaused(t *testing.T) {
	t.Parallel()
	c := newCrontab(t)
	runner := c.tick("node-1", "t", "echo up; sleep 1000", "--lease", "3s").Start()
	runner.Says("up\n")
	other := c.tick("node-2", "t", "exit 7", "--lease", "3s").Start()
	runner.Signal(syscall.SIGSTOP)
	other.Result().Must(t, 0, "^warning: .* was interrupted")
	runner.Signal(syscall.SIGCONT)
	runner.Ends(121)
	c.ran("node-1/t/1")
}

// TestTickIsNotRun: each reason has a line and a code.
func TestTickIsNotRun(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	tick := func(want int, says string, args ...string) {
		t.Helper()
		args = append(args, "--", "sh", "-c", "echo began")
		if r := tenureRuns(t, args...).Run(); strings.Contains(r.Out, "began") {
			t.Errorf("it ran: %+v", r)
		} else {
			r.Must(t, want, says)
		}
	}
	tick(122, "^error: the command was not run: nothing that was started until .* runs, .*: the job is new, or its state was deleted$",
		h.args("tick", "--period", "1h")...)
	tick(122, "^error: the command was not run: nothing that was started until .* runs, .*: the job was new then, or ",
		h.args("tick", "--period", "1h")...)
	h.putAs("other/jobs/tick", "bytes of another program")
	tick(122, "^error: the command was not run: .*holds bytes that are not the state of a job",
		"tick", "--store", h.url, "--election", "other", "--lease", "1s", "--period", "1h")
	tick(125, "^error: .*(the store has not answered within 300ms|no server answers)$",
		"tick", "--store", "nats://127.0.0.1:1/E", "--election", "e", "--period", "1h", "--wait", "300ms")
	tick(125, "^error: --period is missing, or --tick$", h.args("tick")...)
	tick(125, "give one of them$", h.args("tick", "--period", "1h", "--tick", "t")...)
	tick(125, "65 characters", h.args("tick", "--tick", strings.Repeat("x", 65))...)
	tick(125, "^error: --wait is 0", h.args("tick", "--tick", "t", "--wait", "0")...)
	tenureRuns(t, h.args("tick", "--tick", "t", "--", "no-such-command")...).Run().Must(t, 127, "no such command")
}
