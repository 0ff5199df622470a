// Package process starts, awaits, pauses, stops and kills the server processes of tests, and keeps
// their output. A process can be started again, on its files and ports.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// Patience is the time limit for a server to answer after its start, and to end. Even on a busy
// machine, only a server that hangs takes longer.
const Patience = 10 * time.Minute

// Process is a server process. Its methods may be called concurrently, except those that start or
// end it.
type Process struct {
	// Name is for errors. The default is the name of the program.
	Name string
	// Command is the program and its arguments. Env is added to the environment of this process.
	Command, Env []string
	// Dir is the working directory.
	Dir string
	// Log is the file to which the output is appended. Without it, errors go to the standard error.
	Log string
	// User runs the process if this process is root.
	User string
	// Apart gives the process a session of its own. Detached is Apart, and the process goes on when
	// this one ends: Find finds it.
	Apart, Detached bool
	// PIDFile is the file for the number of a Detached process. Mark is a part of the command line
	// by which Find recognizes the process.
	PIDFile, Mark string
	// Family is set for a server with processes of its own: Pause, Resume and Kill reach them, too.
	Family bool
	// StopBy is the signal of Stop. The default is SIGTERM.
	StopBy os.Signal
	// Prepare changes the command before each start, for example to connect pipes.
	Prepare func(*exec.Cmd) error
	// Answers returns an error until the server answers.
	Answers func(context.Context) error

	mu      sync.Mutex
	wanted  bool // started, and no call of this package ended it
	process *os.Process
	ended   chan struct{} // closed when the process has ended; nil if it is not a child of this one
	failure error         // how the process ended
}

// Start starts the process and waits until it answers.
func (p *Process) Start() error {
	if err := p.Begin(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	return p.Await(ctx, p.Answers)
}

// Begin starts the process, and does not wait until it answers.
func (p *Process) Begin() error {
	if p.Runs() {
		return fmt.Errorf("%s runs already", p.name())
	}
	cmd := exec.Command(p.Command[0], p.Command[1:]...)
	cmd.Dir, cmd.Stderr = p.Dir, os.Stderr
	if len(p.Env) > 0 {
		cmd.Env = append(os.Environ(), p.Env...)
	}
	if p.Log != "" {
		out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer func() { _ = out.Close() }() // the process has its own descriptor
		cmd.Stdout, cmd.Stderr = out, out
	}
	if err := As(cmd, p.User); err != nil {
		return err
	}
	if p.Apart || p.Detached {
		machine.Apart(cmd)
	}
	if !p.Detached {
		machine.Together(cmd)
	}
	if p.Prepare != nil {
		if err := p.Prepare(cmd); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.adopt(cmd)
	return p.note(cmd.Process.Pid)
}

func (p *Process) adopt(cmd *exec.Cmd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ended := make(chan struct{})
	p.process, p.ended, p.wanted = cmd.Process, ended, true
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.failure = err
		p.mu.Unlock()
		close(ended)
	}()
}

// Await waits until the process answers. It fails if the process ends, or the context.
func (p *Process) Await(ctx context.Context, answers func(context.Context) error) error {
	_, ended := p.current()
	for {
		err := answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return p.Fault("ended instead of answering")
		case <-ctx.Done():
			return p.Fault(fmt.Sprintf("does not answer (%v)", err))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Runs reports whether the process has not ended. A paused one runs.
func (p *Process) Runs() bool {
	process, ended := p.current()
	switch {
	case process == nil:
		return false
	case ended == nil:
		return has(process.Pid, p.Mark)
	}
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// EndedEarly reports whether the process ended by itself.
func (p *Process) EndedEarly() bool {
	p.mu.Lock()
	wanted := p.wanted
	p.mu.Unlock()
	return wanted && !p.Runs()
}

// PID returns the number of the process. Each start changes it.
func (p *Process) PID() int {
	process, _ := p.current()
	return process.Pid
}

// current returns the process, nil if there was none, and the channel that is closed at its end.
func (p *Process) current() (*os.Process, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process, p.ended
}

// Signal sends a signal only to the process itself, which may end by it.
func (p *Process) Signal(sig os.Signal) error {
	process := p.given()
	if process == nil || !p.Runs() {
		return fmt.Errorf("%s: %w", p.name(), os.ErrProcessDone)
	}
	return process.Signal(sig)
}

// given notes that the process may end by a call of this package.
func (p *Process) given() *os.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = false
	return p.process
}

// Stop ends the process by an orderly shutdown. It returns when the process is gone.
func (p *Process) Stop() error {
	sig := p.StopBy
	if sig == nil {
		sig = syscall.SIGTERM
	}
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return p.gone()
}

// Kill ends the process at once, as a crash does, also a paused one. It returns when the process is
// gone. It may be called twice.
func (p *Process) Kill() error {
	process := p.given()
	if !p.Runs() {
		return nil
	}
	if p.Family {
		return p.killFamily(process.Pid)
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return p.gone()
}

// Pause stops the process by SIGSTOP: it stays connected and silent. It needs a Unix system.
func (p *Process) Pause() error { return p.each(pause) }

// Resume continues a paused process.
func (p *Process) Resume() error { return p.each(resume) }

// each calls do for the process, and for its children if it is a family.
func (p *Process) each(do func(pid int) error) error {
	process, _ := p.current()
	if process == nil || !p.Runs() {
		return fmt.Errorf("%s: %w", p.name(), os.ErrProcessDone)
	}
	pids := []int{process.Pid}
	if p.Family {
		pids = append(pids, children(process.Pid)...)
	}
	for i, pid := range pids {
		if err := do(pid); err != nil && (i == 0 || !isGone(err)) {
			return err
		}
	}
	return nil
}

// Wait waits until the process has ended, and returns how.
func (p *Process) Wait() error {
	if err := p.gone(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

func (p *Process) gone() error {
	for end := time.Now().Add(Patience); p.Runs(); {
		_, ended := p.current()
		select {
		case <-ended:
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			return p.Fault("does not end")
		}
	}
	return nil
}

// Said returns the end of the output.
func (p *Process) Said() string {
	said, _ := os.ReadFile(p.Log)
	return string(Tail(said))
}

// Fault returns an error with the end of the output.
func (p *Process) Fault(what string) error {
	return fmt.Errorf("%s %s: %s", p.name(), what, p.Said())
}

func (p *Process) name() string {
	if p.Name != "" || len(p.Command) == 0 {
		return p.Name
	}
	return filepath.Base(p.Command[0])
}

// Tail returns the end of an output, which has the reason of a failure.
func Tail(out []byte) []byte { return out[max(0, len(out)-2000):] }

// note writes the number of a process that other processes look for.
func (p *Process) note(pid int) error {
	if p.PIDFile == "" {
		return nil
	}
	return os.WriteFile(p.PIDFile, []byte(strconv.Itoa(pid)), 0o600)
}

// Find looks for a Detached process that another process has started.
func (p *Process) Find() {
	written, err := os.ReadFile(p.PIDFile)
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(written)))
	if err != nil || !has(pid, p.Mark) {
		return
	}
	p.process, _ = os.FindProcess(pid)
}
