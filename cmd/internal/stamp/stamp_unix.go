//go:build unix

package stamp

import "golang.org/x/sys/unix"

// Now reads CLOCK_MONOTONIC. It panics where there is none: without it nothing can be said about
// overlaps.
func Now() Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("tenure: clock_gettime: " + err.Error())
	}
	return Time(ts.Nano())
}
