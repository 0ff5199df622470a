package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// The identifiers of clock_gettime(2).
const (
	clockMonotonic    = 1
	clockMonotonicRaw = 4
	clockBoottime     = 7
)

// System reads the clocks of the machine. On Linux it reads CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW
// and CLOCK_BOOTTIME (rule L5 of docs/protocol.md), so neither a time daemon that slews the clock
// nor a suspended machine leads to two leaders. On other systems it reads package time's monotonic
// clock, and the wall clock in place of CLOCK_BOOTTIME. There Drift returns 0.10, because a time
// daemon may slew that clock by 8.3 %.
type System struct{ Standard }

// Now reads CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME and the wall clock. A call takes
// about a microsecond.
func (System) Now() Reading {
	return Reading{
		Instant{Mono: gettime(clockMonotonic), Raw: gettime(clockMonotonicRaw), Boot: gettime(clockBoottime)},
		time.Now(),
	}
}

// gettime panics if the kernel refuses one of these clocks: every Linux that Go supports has them,
// and a lease that is counted on a clock that stands still is worse than a crash.
func gettime(id uintptr) time.Duration {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic("tenure: clock_gettime: " + errno.Error())
	}
	return time.Duration(ts.Nano())
}
