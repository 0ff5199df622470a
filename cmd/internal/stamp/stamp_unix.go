//go:build unix

package stamp

import "golang.org/x/sys/unix"

// Now reads CLOCK_MONOTONIC. It panics if that fails: without this clock, overlaps cannot be
// detected.
func Now() Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("tenure: clock_gettime: " + err.Error())
	}
	return Time(ts.Nano())
}
