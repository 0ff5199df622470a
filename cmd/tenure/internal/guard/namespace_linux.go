package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespace is a PID namespace for one command, and a mount namespace for its /proc. When its first
// process, the init, ends, the kernel kills all other processes in it. The init ends with the
// guard: its parent-death signal comes when the thread ends that has started it.
type namespace struct {
	init  int         // its process number
	used  *os.File    // after this is closed, the init ends when it has no children
	calls chan func() // for the thread
}

// newNamespace starts the init of a namespace.
func newNamespace(m mode) (*namespace, error) {
	n := &namespace{calls: make(chan func())}
	go n.serve()
	if err := n.do(func() error { return n.open(m) }); err != nil {
		n.discard()
		return nil, fmt.Errorf("make a PID namespace: %w", err)
	}
	return n, nil
}

// serve runs calls on a thread of its own. The goroutine stays locked, so the thread ends with it,
// and runs no other code in the namespaces.
func (n *namespace) serve() {
	runtime.LockOSThread()
	for call := range n.calls {
		call()
	}
}

// do runs a call on the thread. The children that it starts are in the namespaces.
func (n *namespace) do(call func() error) error {
	result := make(chan error)
	n.calls <- func() { result <- call() }
	return <-result
}

func (n *namespace) open(m mode) error {
	// also separates this thread's mounts from those of the other threads
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWPID); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return os.NewSyscallError("mount --make-rslave /", err)
	}
	if err := n.startInit(); err != nil {
		return err
	}
	if m == asUser { // the command shall not have it
		return os.NewSyscallError("prctl", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_LOWER, unix.CAP_SYS_ADMIN, 0, 0))
	}
	return nil
}

// startInit returns when the init has mounted /proc.
func (n *namespace) startInit() error {
	used, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	n.used = ours
	defer func() { _ = used.Close() }()
	said, says, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = said.Close() }()
	n.init, err = syscall.ForkExec("/proc/self/exe", []string{os.Args[0], os.Args[1], initArg}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2, initUsed: used.Fd(), initSays: says.Fd()},
		Sys: &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL},
	})
	_ = says.Close()
	if err != nil {
		return fmt.Errorf("start its first process: %w", err)
	}
	switch text, _ := io.ReadAll(said); string(text) {
	case initReady:
		return nil
	case "":
		return errors.New("its first process has died")
	default:
		return errors.New(string(text))
	}
}

// discard ends a namespace without a command.
func (n *namespace) discard() {
	if n.init > 0 {
		_ = unix.Kill(n.init, unix.SIGKILL)
		_, _ = unix.Wait4(n.init, nil, 0, nil)
	}
	n.end()
}

// end ends the thread, and with it the init.
func (n *namespace) end() {
	close(n.calls)
	if n.used != nil {
		_ = n.used.Close()
	}
}

// contained is a job in a namespace of its own.
type contained struct {
	job
	space *namespace
}

func (l *lines) contains() bool { return l.mode != plain }

// beginContained is begin for a command in a namespace. The command is a child of the guard, and
// needs no parent-death signal: the init has one.
func (l *lines) beginContained(c *Command) (work, error) {
	n, err := newNamespace(l.mode)
	if err != nil {
		return nil, err
	}
	j := &contained{space: n}
	err = n.do(func() (err error) {
		j.pid, err = c.execute(&syscall.SysProcAttr{Setpgid: true})
		return err
	})
	if err != nil {
		n.discard()
		return nil, err
	}
	return j, l.tie(j.pid)
}

// kill needs no search: the end of the init ends all.
func (j *contained) kill() {
	_ = unix.Kill(j.space.init, unix.SIGKILL)
	j.job.kill()
}

// collect also lets the init end after the command, once nothing else is left. The init is the last
// child of the guard.
func (j *contained) collect() (end *Ending, empty bool) {
	end, empty = j.job.collect()
	if end != nil {
		_ = j.space.used.Close()
	}
	if empty {
		j.space.end()
	}
	return end, empty
}
