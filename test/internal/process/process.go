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
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
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
	// Family is set for a server with processes of its own: Pause, Resume and Kill reach them, too.
	Family bool
	// Respawn starts the process again when it has ended by itself, as an init system does.
	Respawn bool
	// StopBy is the signal of Stop. The default is SIGTERM.
	StopBy os.Signal
	// Prepare changes the command before each start, for example to connect pipes.
	Prepare func(*exec.Cmd) error
	// Answers returns an error until the server answers.
	Answers func(context.Context) error

	mu      sync.Mutex
	wanted  bool // started, and no call of this package ended it
	process *crew.Process
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
	if p.Prepare != nil {
		if err := p.Prepare(cmd); err != nil {
			return err
		}
	}
	started, err := crew.Start(cmd)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process, p.wanted = started, true
	if p.Respawn {
		go p.respawn(started)
	}
	return nil
}

func (p *Process) respawn(started *crew.Process) {
	<-started.Ended()
	if p.current() == started && p.EndedEarly() {
		_ = p.Begin()
	}
}

// Await waits until the process answers. It fails if the process ends, or the context.
func (p *Process) Await(ctx context.Context, answers func(context.Context) error) error {
	process := p.current()
	for {
		err := answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-process.Ended():
			return p.Fault("ended instead of answering")
		case <-ctx.Done():
			return p.Fault(fmt.Sprintf("does not answer (%v)", err))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Runs reports whether the process has not ended. A paused one runs.
func (p *Process) Runs() bool {
	process := p.current()
	return process != nil && process.Running()
}

// EndedEarly reports whether the process ended by itself.
func (p *Process) EndedEarly() bool {
	p.mu.Lock()
	wanted := p.wanted
	p.mu.Unlock()
	return wanted && !p.Runs()
}

// PID returns the number of the process. Each start changes it.
func (p *Process) PID() int { return p.current().PID() }

// current returns the process, nil if there was none.
func (p *Process) current() *crew.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// Signal sends a signal only to the process itself, which may end by it.
func (p *Process) Signal(sig os.Signal) error {
	process := p.given()
	if !p.Runs() {
		return fmt.Errorf("%s: %w", p.name(), os.ErrProcessDone)
	}
	return process.Signal(sig)
}

// given notes that the process may end by a call of this package.
func (p *Process) given() *crew.Process {
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
		return p.killFamily(process.PID())
	}
	if err := process.Kill(); err != nil {
		return err
	}
	return p.gone()
}

// killFamily ends a process and its children. It returns when all are gone: the next start of
// PostgreSQL refuses while one of them still uses the shared memory.
func (p *Process) killFamily(pid int) error {
	// A stopped server starts no more processes, so the list below is complete.
	if err := crew.Freeze(pid); err != nil {
		return err
	}
	all := append([]int{pid}, children(pid)...)
	for _, one := range all {
		if err := crew.Kill(one); err != nil {
			return err
		}
	}
	if err := p.gone(); err != nil {
		return err
	}
	for _, one := range all {
		for machine.Lives(one) {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// children returns the processes that a process has started.
func children(of int) []int {
	pids, _ := machine.Processes()
	return slices.DeleteFunc(pids, func(pid int) bool { return machine.Parent(pid) != of })
}

// Pause stops the process by SIGSTOP: it stays connected and silent. It needs a Unix system.
func (p *Process) Pause() error { return p.each(crew.Freeze) }

// Resume continues a paused process.
func (p *Process) Resume() error { return p.each(crew.Continue) }

// each calls do for the process, and for its children if it is a family.
func (p *Process) each(do func(pid int) error) error {
	if !p.Runs() {
		return fmt.Errorf("%s: %w", p.name(), os.ErrProcessDone)
	}
	pids := []int{p.PID()}
	if p.Family {
		pids = append(pids, children(p.PID())...)
	}
	for _, pid := range pids {
		if err := do(pid); err != nil {
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
	return p.current().Wait()
}

// gone waits until the process has ended, if there was one.
func (p *Process) gone() error {
	process := p.current()
	if process == nil {
		return nil
	}
	select {
	case <-process.Ended():
		return nil
	case <-time.After(Patience):
		return p.Fault("does not end")
	}
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
