package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Isolate makes a guard run each command in a PID namespace of its own, which ends with the guard.
// Call it before Start, which returns an error if the system refuses such a namespace. Without the
// capability CAP_SYS_ADMIN, the guard and its commands are also in a user namespace.
func Isolate(command *exec.Cmd) {
	m := asRoot
	if !administers() {
		m = asUser
		uid, gid := os.Geteuid(), os.Getegid()
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
		}
	}
	command.Args = append(command.Args, string(m))
}

// administers reports whether this process has CAP_SYS_ADMIN.
func administers() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// Uncovered returns the processes of a command that may outlive tenure, as a sentence, or an empty
// text if there are none. The first process of a container ends with all others. Systemd sets
// SYSTEMD_EXEC_PID for the first process of a unit, and kills the others of the unit when it ends.
func Uncovered(isolated bool) string {
	self := os.Getpid()
	if isolated || self == 1 || os.Getenv("SYSTEMD_EXEC_PID") == strconv.Itoa(self) {
		return ""
	}
	return "processes that leave the command's process group are not ended if tenure and its guard are killed together: --pid-namespace ends them too"
}

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

func (b *backstop) contains() bool { return b.mode != plain }

// beginContained is begin for a command in a namespace. The command is a child of the guard, and
// needs no parent-death signal: the init has one.
func (b *backstop) beginContained(c *Command) (work, error) {
	n, err := newNamespace(b.mode)
	if err != nil {
		return nil, err
	}
	j := &contained{job: job{killer: b.killer}, space: n}
	err = n.do(func() (err error) {
		j.pid, err = c.execute(&syscall.SysProcAttr{Setpgid: true})
		return err
	})
	if err != nil {
		n.discard()
		return nil, err
	}
	j.killer.aim(&j.job)
	return j, b.tie(j.pid)
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

// The init has two files with these numbers.
const (
	initUsed = 3 // ends when the command has ended
	initSays = 4 // receives initReady, or the reason why there can be no init

	initReady = "ready"
)

// beInit is the first process of a command's PID namespace. It adopts orphans, and returns when the
// command has ended and no other process of the namespace is left. Because it ignores SIGCHLD, the
// kernel reaps its children.
func beInit() error {
	// the signals for all descendants come here too
	signal.Ignore(append(Forwarded, unix.SIGCHLD)...)
	says := os.NewFile(initSays, "says")
	if err := mountProc(); err != nil {
		_, _ = io.WriteString(says, err.Error())
		return err
	}
	_, _ = io.WriteString(says, initReady)
	_ = says.Close()
	defer KeepSmall(startUp)()
	_, _ = io.Copy(io.Discard, os.NewFile(initUsed, "used"))
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			return nil
		}
	}
}

// mountProc makes /proc show the processes of this namespace. It also gives this process a name,
// for people who look at the list of processes.
func mountProc() error {
	_ = os.WriteFile("/proc/self/comm", []byte("tenure-init"), 0)
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount its /proc: %w", err)
	}
	return nil
}
