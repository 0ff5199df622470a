// Package crew runs candidates as processes of their own, for the demo, the battery, the benchmarks
// and the tests. It starts them, hands them their settings, reads their reports, and freezes,
// continues, stops and kills them. The reports mean nothing to it: internal/witness judges them.
//
//	process.go  a process, as the program sees it that started it
//	member.go   the same process from inside: its settings and its reports
//	journal.go  the reports of all processes, in the order of their arrival
package crew

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
)

// Process is a process that Start or Hire has started. Its methods do nothing and return nil if it
// has ended.
type Process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser // nil unless it was hired
	ended chan struct{}
	err   error // of its end; read it after ended is closed
}

// Self returns a command that runs this program again.
func Self(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.Command(self, args...)
}

// Start starts a program. Keys at the terminal do not reach it. On Linux the kernel kills it, even
// frozen, when this process ends, or when the thread ends that called Start: Go ends a thread only
// with a goroutine that is locked to it.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	return p, p.start(func() {})
}

// Hire starts a program that calls Settings. It sends the settings, and calls hear with each report
// of the program, in order. Other lines of its output and all lines of its standard error go to
// other, from several goroutines.
func Hire[R any](cmd *exec.Cmd, settings any, hear func(R), other func(line string)) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = &lines{each: other}
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.start(func() { listen(out, hear, other) }); err != nil {
		return nil, err
	}
	_ = p.Send(settings) // fails if the process has died, which its end shows
	return p, nil
}

func (p *Process) start(read func()) error {
	Separate(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		read()
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return nil
}

// listen reads reports until the last one: a pipe outlives its writer.
func listen[R any](out io.Reader, hear func(R), other func(string)) {
	for scan := bufio.NewScanner(out); scan.Scan(); {
		var r R
		if err := json.Unmarshal(scan.Bytes(), &r); err != nil {
			other(scan.Text())
			continue
		}
		hear(r)
	}
	_, _ = io.Copy(io.Discard, out) // after a line that is too long
}

// lines cuts the written text into lines.
type lines struct {
	each func(string)
	part []byte
}

// Write takes any part of the text.
func (l *lines) Write(text []byte) (int, error) {
	l.part = append(l.part, text...)
	for {
		line, rest, ok := bytes.Cut(l.part, []byte("\n"))
		if !ok {
			return len(text), nil
		}
		l.each(string(line))
		l.part = bytes.Clone(rest)
	}
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Send sends a process that was hired one more line of JSON.
func (p *Process) Send(order any) error { return json.NewEncoder(p.in).Encode(order) }

// Leave ends the standard input of a process that was hired, and waits for its end.
func (p *Process) Leave() error {
	_ = p.in.Close()
	return p.Wait()
}

// Stop asks the process to end: by SIGTERM, or on Windows by the end of its standard input.
func (p *Process) Stop() error {
	if sigterm == nil {
		return p.in.Close()
	}
	return p.Signal(sigterm)
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return signal(p.cmd.Process, s) }

// Kill kills the process, even frozen.
func (p *Process) Kill() error { return p.Signal(os.Kill) }

// Freeze stops the process by SIGSTOP, as an overloaded machine may do. CanFreeze says whether the
// system has that.
func (p *Process) Freeze() error { return p.Signal(sigstop) }

// Continue continues a frozen process.
func (p *Process) Continue() error { return p.Signal(sigcont) }

// Ended returns a channel that is closed when the process has ended and its last report was heard.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait waits until the process has ended. It returns the error of exec.Cmd.Wait.
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}

// Code returns the exit code, -1 after a signal. Call it when the process has ended.
func (p *Process) Code() int { return p.cmd.ProcessState.ExitCode() }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Kill kills any process, such as one that a member of the crew has started.
func Kill(pid int) error { return signalPID(pid, os.Kill) }

// Freeze stops any process by SIGSTOP.
func Freeze(pid int) error { return signalPID(pid, sigstop) }

// Continue continues any process.
func Continue(pid int) error { return signalPID(pid, sigcont) }

func signalPID(pid int, s os.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return signal(p, s)
}

func signal(p *os.Process, s os.Signal) error {
	if s == nil {
		return errors.ErrUnsupported
	}
	if err := p.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
