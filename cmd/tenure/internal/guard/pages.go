package guard

import (
	"runtime/debug"
	"time"
)

// giveBackEvery is how often a process gives back the pages that it touched meanwhile: a lost connection, for example, takes
// many pages of the program that nothing needs for days.
const giveBackEvery = time.Minute

// KeepSmall keeps a process small that waits most of the time. After a while, in which the process comes to its work, it gives
// back what starting has left behind: free memory, and the pages of the program's own file. It does so with the pages again and
// again, until stop is called.
func KeepSmall(after time.Duration) (stop func() bool) {
	return keepSmall(after, debug.FreeOSMemory, giveBackPages)
}

func keepSmall(after time.Duration, freeMemory, givePages func()) (stop func() bool) {
	first := true
	var timer *time.Timer
	timer = time.AfterFunc(giveBackEvery, func() {
		if first {
			freeMemory() // each time would rather take memory, for the collector's own work
		}
		first = false
		givePages()
		timer.Reset(giveBackEvery)
	})
	timer.Reset(after)
	return timer.Stop
}
