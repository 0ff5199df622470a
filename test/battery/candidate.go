package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// candidate is one `tenure run` of a stage, with a relay of its own to the server. It can be
// started again.
type candidate struct {
	stage  *stage
	number int
	tenure string // the binary
	relay  *relay.Relay
	cmd    *exec.Cmd
	ended  chan struct{} // closed when tenure has ended
}

func (c *candidate) id() string { return fmt.Sprintf("c%d", c.number) }

// log returns the path of the file with the output of all processes of all starts.
func (c *candidate) log() string { return filepath.Join(c.stage.dir, c.id()+".log") }

func (c *candidate) start() error {
	log, err := os.OpenFile(c.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(c.tenure, c.args()...)
	cmd.Env = environment(c.stage.mark)
	cmd.Stdout, cmd.Stderr = log, log
	machine.Apart(cmd)
	machine.Together(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	c.cmd, c.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

func (c *candidate) args() []string {
	args := []string{"run", "--store", c.stage.server.store(c.address()), "--create", "--election", election, "--id", c.id(),
		"--lease", c.stage.lease.String(), "--log-level", "debug"}
	args = append(append(append(args, c.stage.row.run...), "--"), c.stage.row.by...)
	args = append(args, c.stage.b.worker, "-journal", c.stage.journal())
	return append(args, c.stage.row.worker...)
}

// address returns the value of --store that leads to the server through the candidate's relay.
func (c *candidate) address() string {
	if c.relay == nil {
		return ""
	}
	return strings.TrimPrefix(c.relay.URL(), "nats://")
}

func (c *candidate) pid() int { return c.cmd.Process.Pid }

// guard returns the guard process that tenure has started.
func (c *candidate) guard() (int, error) {
	all, err := processesOf(c.stage.mark)
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if p.parent == c.pid() && p.exe == c.tenure && p.token == "" {
			return p.pid, nil
		}
	}
	return 0, fmt.Errorf("%s: %w", c.id(), errNoGuard)
}

var errNoGuard = errors.New("there is no guard")

// command returns the process that a guard of the candidate has started, or 0 if none runs.
func (c *candidate) command() (int, error) {
	all, err := processesOf(c.stage.mark)
	for _, p := range all {
		if r, ok := c.stage.watch.last(); ok && p.pid == r.root && p.id == c.id() {
			return p.pid, nil
		}
	}
	return 0, err
}

// signal sends tenure a signal. It does nothing if tenure has ended.
func (c *candidate) signal(s os.Signal) error {
	if err := c.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// stop sends tenure SIGTERM, for an orderly end.
func (c *candidate) stop() error { return c.signal(syscall.SIGTERM) }

func (c *candidate) running() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// exit waits until tenure has ended and returns its exit code, -1 after a signal.
func (c *candidate) exit(ctx context.Context) (int, error) {
	select {
	case <-c.ended:
		return c.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("tenure of %s has not ended: %w", c.id(), ctx.Err())
	}
}

// kill sends SIGKILL to any process. It returns no error if the process is gone.
func kill(pid int) error {
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
