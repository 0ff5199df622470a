package machine

import (
	"os/exec"
	"syscall"
	"time"
	"unsafe"
)

// Supported says whether this machine can be measured.
const Supported = true

const clockMonotonic = 1

// Now returns CLOCK_MONOTONIC in nanoseconds. Unlike the monotonic part of time.Now, it is
// comparable between processes.
func Now() int64 {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic("clock_gettime: " + errno.Error())
	}
	return ts.Nano()
}

// Pause stops a process by SIGSTOP. An overloaded machine may stop a process for as long.
func Pause(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

// Resume continues a paused process.
func Resume(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }

// CPU returns the processor time that this process has used.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("getrusage: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Together makes a process that is not yet started end with this one, even if this one is killed.
func Together(cmd *exec.Cmd) { attributes(cmd).Pdeathsig = syscall.SIGKILL }

// Apart gives a process a session of its own, so that keys at the terminal do not reach it.
func Apart(cmd *exec.Cmd) { attributes(cmd).Setsid = true }

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}
