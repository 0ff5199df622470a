package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// markVariable is in the environment of every process of a stage. So the battery finds all of them,
// whatever their parent, group or session is.
const markVariable = "TENURE_BATTERY"

// process holds what the system shows of one process of a stage.
type process struct {
	pid, parent int
	state       string
	exe         string // the path of the program, if known
	id, token   string // the values that tenure passed to a worker
}

func (p process) String() string {
	s := fmt.Sprintf("process %d (%s) of %d", p.pid, p.state, p.parent)
	if p.token != "" {
		s += fmt.Sprintf(", with token %s of %s", p.token, p.id)
	}
	return s
}

// older reports whether the process received a lower token.
func (p process) older(token uint64) bool {
	own, err := strconv.ParseUint(p.token, 10, 64)
	return err == nil && own < token
}

// processesOf returns all running processes with the mark. A process that is just ending may be
// missing. A zombie cannot act any more.
func processesOf(mark string) (all []process, err error) {
	pids, err := machine.Processes()
	for _, pid := range pids {
		if p, ok := look(pid, mark); ok && machine.Lives(pid) {
			all = append(all, p)
		}
	}
	return all, err
}

// look returns a process if it has the mark.
func look(pid int, mark string) (process, bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	environ, err := os.ReadFile(dir + "environ")
	if err != nil || !bytes.Contains(environ, []byte(markVariable+"="+mark+"\x00")) {
		return process{}, false
	}
	p := process{pid: pid}
	for v := range strings.SplitSeq(string(environ), "\x00") {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "TENURE_ID":
			p.id = value
		case "TENURE_TOKEN":
			p.token = value
		}
	}
	p.exe, _ = os.Readlink(dir + "exe")
	stat := machine.Stat(pid)
	if len(stat) < 2 {
		return process{}, false
	}
	p.state, p.parent = stat[0], machine.Parent(pid)
	return p, true
}

// candidate is one `tenure run`, cron or agent of a stage, with a relay of its own to the server.
// It can be started again.
type candidate struct {
	stage  *stage
	number int
	tenure string // the binary
	relay  *relay.Relay
	*crew.Process
	ended  <-chan struct{} // closed when tenure has ended
	worker *crew.Process   // of tenure agent
	starts int             // that record a trace
}

func (c *candidate) id() string { return fmt.Sprintf("c%d", c.number) }

// log returns the path of the file with the output of all processes of all starts.
func (c *candidate) log() string { return filepath.Join(c.stage.dir, c.id()+".log") }

func (c *candidate) openLog() (*os.File, error) {
	return os.OpenFile(c.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

func (c *candidate) start() error {
	if c.stage.row.agent {
		return c.startAgent()
	}
	return c.startTenure()
}

func (c *candidate) startTenure() error {
	log, err := c.openLog()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(c.tenure, c.args()...)
	cmd.Env = environment(c.stage.mark, c.stage.row.kind().Environ(c.address())...)
	if bound := c.stage.b.offset(c.stage.row); bound > 0 {
		cmd.Env = append(cmd.Env, wallVariable+"="+(c.stage.some(2*bound)-bound).String())
	}
	cmd.Stdout, cmd.Stderr = log, log
	p, err := crew.Start(cmd)
	if err == nil {
		c.Process, c.ended = p, p.Ended()
	}
	return err
}

func (c *candidate) args() []string {
	if c.stage.row.agent {
		return c.agentArgs()
	}
	what, flags, ticks := "run", c.stage.row.run, []string(nil)
	if c.stage.row.cron != nil {
		what, flags, ticks = "cron", c.stage.cronArgs(), []string{"-ticks", c.stage.ticks()}
	}
	args := []string{what, "--store", c.stage.row.kind().URL(c.address()), "--create", "--election", election, "--id", c.id(),
		"--lease", c.stage.lease.String(), "--log-level", "debug"}
	args = slices.Concat(args, flags, c.traceArgs(), []string{"--"}, c.stage.row.by, []string{c.stage.b.worker, "-journal", c.stage.journal()}, ticks)
	return append(args, c.stage.row.worker...)
}

// address returns the address of the server, through the candidate's relay if there is one.
func (c *candidate) address() string {
	if c.relay == nil {
		return c.stage.server.Addresses()[0]
	}
	return strings.TrimPrefix(c.relay.URL(), "nats://")
}

// guard returns the guard process that tenure has started.
func (c *candidate) guard() (int, error) {
	all, err := processesOf(c.stage.mark)
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if p.parent == c.PID() && p.exe == c.tenure && p.token == "" {
			return p.pid, nil
		}
	}
	return 0, fmt.Errorf("%s: %w", c.id(), errNoGuard)
}

var errNoGuard = errors.New("there is no guard")

// awaitGuard waits for a guard: on a busy machine the last one may have died with the lease. An
// agent has none.
func (c *candidate) awaitGuard() int {
	if c.stage.row.agent {
		return 0
	}
	for {
		pid, err := c.guard()
		if err == nil {
			return pid
		}
		if !errors.Is(err, errNoGuard) || !sleep(c.stage.b.ctx, 10*time.Millisecond) {
			check(err)
		}
	}
}

// command returns the process that a guard of the candidate has started, or 0 if none runs.
func (c *candidate) command() (int, error) {
	all, err := processesOf(c.stage.mark)
	for _, p := range all {
		if r, ok := c.stage.watch.reigns.Last(); ok && p.pid == r.root && p.id == c.id() {
			return p.pid, nil
		}
	}
	return 0, err
}

func (c *candidate) running() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// wait waits until tenure has ended.
func (c *candidate) wait(ctx context.Context) error {
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("tenure of %s has not ended: %w", c.id(), ctx.Err())
	}
}
