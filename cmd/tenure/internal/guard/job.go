//go:build unix

package guard

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// job is a command and all its descendants.
type job struct {
	pid    int // also of its process group
	reaped bool
}

// begin starts a command. It returns nil and an error if the command could not be started. The
// command is the child of the calling thread, which must not end: the parent-death signal depends
// on it.
func (l *lines) begin(c *Command) (work, error) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	l.bind(attr)
	p, err := os.StartProcess(string(c.Path), inText(c.Args), &os.ProcAttr{
		Env: inText(c.Env), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attr,
	})
	if err != nil {
		return nil, err
	}
	j := &job{pid: p.Pid}
	_ = p.Release()
	return j, l.tie(j.pid)
}

// failedBy returns the report for a command that could not be started.
func failedBy(err error) *failure {
	return &failure{
		Error: err.Error(), Missing: missing(err),
		Passing: errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE),
	}
}

// missing reports whether there is no such command, which has an exit code of its own.
func missing(err error) bool { return errors.Is(err, os.ErrNotExist) }

func (j *job) process() int { return j.pid }

// signal signals the command itself.
func (j *job) signal(s syscall.Signal) {
	if !j.reaped {
		_ = unix.Kill(j.pid, s)
	}
}

// signalAll signals every descendant. After the command was reaped, another program may have its
// process number, so the group is signaled only if that is impossible.
func (j *job) signalAll(s syscall.Signal) {
	if !j.reaped || !FindsOrphans {
		_ = unix.Kill(-j.pid, s)
	}
	for _, pid := range descendants(os.Getpid(), nil) {
		if group, err := unix.Getpgid(pid); j.reaped || err == nil && group != j.pid {
			_ = unix.Kill(pid, s)
		}
	}
}

// finish asks all processes to end.
func (j *job) finish() { j.ask(unix.SIGTERM) }

// ask sends a signal to all processes, and continues those that are stopped.
func (j *job) ask(s syscall.Signal) {
	j.signalAll(s)
	j.signalAll(unix.SIGCONT)
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
			return end, j.nothingLeft()
		case pid == 0:
			return end, false
		case status.Stopped():
			j.wake(status)
		case pid == j.pid:
			j.reaped, end = true, ending(status)
		}
	}
}

// wake continues a command that has stopped by SIGTSTP. The guard ignores that signal, but the
// command may have restored its default.
func (j *job) wake(status unix.WaitStatus) {
	if status.StopSignal() == unix.SIGTSTP {
		j.signalAll(unix.SIGCONT)
	}
}

func ending(status unix.WaitStatus) *Ending {
	if status.Signaled() {
		return &Ending{Signal: int(status.Signal())}
	}
	return &Ending{Code: status.ExitStatus()}
}

// nothingLeft reports whether no descendant is left, once the guard has no child. Where orphans
// become children of the guard, that is always so.
func (j *job) nothingLeft() bool {
	return FindsOrphans || errors.Is(unix.Kill(-j.pid, 0), unix.ESRCH)
}
