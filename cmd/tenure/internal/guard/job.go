//go:build unix

package guard

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// job is a command and all its descendants.
type job struct {
	pid    int // also of its process group
	reaped bool
	found  []found // the descendants that the last search has found
	killer *killer // knows them, too
}

// begin starts a command. It returns nil and an error if the command could not be started. The
// command is the child of the calling thread, which must not end: the parent-death signal depends
// on it.
func (b *backstop) begin(c *Command) (work, error) {
	if b.contains() {
		return b.beginContained(c)
	}
	attr := &syscall.SysProcAttr{Setpgid: true}
	b.bind(attr)
	pid, err := c.execute(attr)
	if err != nil {
		return nil, err
	}
	j := &job{pid: pid, killer: b.killer}
	j.killer.aim(j)
	return j, b.tie(pid)
}

// execute starts the command with the standard files of this process, or with those of its Output.
func (c *Command) execute(attr *syscall.SysProcAttr) (pid int, err error) {
	path, files := string(c.Path), []uintptr{0, 1, 2}
	if len(c.Output) > 0 {
		kept, err := os.OpenFile(string(c.Output), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
		if err != nil {
			return 0, fmt.Errorf("keep the output: %w", err)
		}
		defer func() { _ = kept.Close() }()
		files[1], files[2] = kept.Fd(), kept.Fd()
	}
	pid, err = syscall.ForkExec(path, inText(c.Args), &syscall.ProcAttr{
		Env: inText(c.Env), Files: files, Sys: attr,
	})
	if err != nil {
		return 0, &os.PathError{Op: "execute", Path: path, Err: err}
	}
	return pid, nil
}

// failedBy returns the error of a command that could not be started.
func failedBy(err error) *StartError {
	return &StartError{
		Text: err.Error(), Missing: errors.Is(err, os.ErrNotExist),
		Passing: errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE),
	}
}

func (j *job) process() int { return j.pid }

// signal signals the command itself.
func (j *job) signal(s syscall.Signal) {
	if !j.reaped {
		_ = unix.Kill(j.pid, s)
	}
}

// signalGroup signals the command's process group. After the command was reaped, another program
// may have its process number, so the group is signaled only if that is impossible.
func (j *job) signalGroup(s syscall.Signal) {
	if !j.reaped || !FindsOrphans {
		_ = unix.Kill(-j.pid, s)
	}
}

// search finds all descendants. It takes no longer than within. If that is too short, it keeps
// those that it has found before.
func (j *job) search(within time.Duration) {
	all, whole := descendants(os.Getpid(), nil, within)
	if !whole {
		all = append(all, j.found...)
	}
	j.found = all
	j.killer.aim(j)
}

// outside yields the descendants that have been found, without those that signalGroup reaches.
func (j *job) outside() iter.Seq[found] {
	return func(yield func(found) bool) {
		for _, f := range j.found {
			if group, err := unix.Getpgid(f.pid); (j.reaped || err == nil && group != j.pid) && !yield(f) {
				return
			}
		}
	}
}

func (j *job) signalFound(s syscall.Signal) {
	for f := range j.outside() {
		f.signal(s)
	}
}

// kill sends SIGKILL to all processes that are known. It does not search.
func (j *job) kill() {
	j.signalGroup(unix.SIGKILL)
	j.signal(unix.SIGKILL) // it may have left the group
	j.signalFound(unix.SIGKILL)
}

// ask sends a signal to all processes, and continues those that are stopped. It searches for them
// no longer than within.
func (j *job) ask(s syscall.Signal, within time.Duration) {
	j.signalGroup(s)
	j.signalGroup(unix.SIGCONT)
	j.search(within)
	j.signalFound(s)
	j.signalFound(unix.SIGCONT)
}

// collect reaps all children that have ended. It returns the command's end if the command is one of
// them.
func (j *job) collect() (end *Ending, empty bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			// the guard has no child: where orphans become its children, nothing is left
			return end, FindsOrphans || errors.Is(unix.Kill(-j.pid, 0), unix.ESRCH)
		case pid == 0:
			return end, false
		case status.Stopped():
			j.wake(pid, status)
		case pid == j.pid:
			j.reaped, end = true, ending(status)
			j.killer.aim(j)
		}
	}
}

// wake continues a process and the command's group if the process has stopped by SIGTSTP, or
// because it needs the terminal, which is lent to it. The guard ignores SIGTSTP, but the command
// may have restored its default.
func (j *job) wake(pid int, status unix.WaitStatus) {
	switch status.StopSignal() {
	case unix.SIGTSTP:
		_ = unix.Kill(pid, unix.SIGCONT)
		j.signalGroup(unix.SIGCONT)
	case unix.SIGTTIN, unix.SIGTTOU:
		if group, err := unix.Getpgid(pid); err == nil && group == j.pid {
			j.lend()
		}
	}
}

func ending(status unix.WaitStatus) *Ending {
	if status.Signaled() {
		return &Ending{Signal: int(status.Signal())}
	}
	return &Ending{Code: status.ExitStatus()}
}

// lend gives the terminal to the command's process group, which has stopped for want of it, if the
// candidate has it. From then on the keys that send signals reach the command alone. So a command
// that does not use the terminal never has it, and the candidate hears a second Ctrl-C.
func (j *job) lend() {
	tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(tty) }()
	owner, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	if err != nil {
		return
	}
	if candidate, err := unix.Getpgid(os.Getppid()); owner != j.pid && (err != nil || owner != candidate) {
		return // another program has it
	}
	signal.Ignore(unix.SIGTTOU) // the system would stop this process
	defer signal.Reset(unix.SIGTTOU)
	if unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, j.pid) == nil {
		j.signalGroup(unix.SIGCONT)
	}
}
