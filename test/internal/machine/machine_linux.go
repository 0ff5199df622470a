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

// Now is CLOCK_MONOTONIC in nanoseconds. Unlike the monotonic part of time.Now it may be compared
// among processes.
func Now() int64 {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic("clock_gettime: " + errno.Error())
	}
	return ts.Nano()
}

// Pause stops a process in its tracks, as an overloaded machine may.
func Pause(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

// Resume lets it go on.
func Resume(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }

// CPU is the processor time that this process has used.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("getrusage: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Together lets a process that is to be started end with this one, also where this one is killed.
func Together(cmd *exec.Cmd) { attributes(cmd).Pdeathsig = syscall.SIGKILL }

// Apart gives it a session of its own, so that keys at the terminal do not reach it.
func Apart(cmd *exec.Cmd) { attributes(cmd).Setsid = true }

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}
