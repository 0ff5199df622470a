package machine

import (
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

// CPU returns the processor time that this process has used.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("getrusage: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
