package guard

import (
	"runtime/debug"
	"sync/atomic"
	"time"
)

// giveBackEvery is the time between two releases of pages. For example, a lost connection touches
// many pages of the program that are not needed again for days.
const giveBackEvery = time.Minute

// KeepSmall keeps the memory of a mostly waiting process small. After the time that the process
// needs to start, it releases free memory, and the pages of the program's own file. It releases
// these pages again each minute, until stop is called.
func KeepSmall(after time.Duration) (stop func() bool) {
	return keepSmall(after, debug.FreeOSMemory, giveBackPages)
}

func keepSmall(after time.Duration, freeMemory, givePages func()) (stop func() bool) {
	first := true
	var stopped atomic.Bool
	var timer *time.Timer
	timer = time.AfterFunc(giveBackEvery, func() {
		if first {
			// releasing free memory each time would cost more: the collector needs some for its own
			// work
			freeMemory()
		}
		first = false
		givePages()
		if !stopped.Load() {
			timer.Reset(giveBackEvery)
		}
	})
	timer.Reset(after)
	return func() bool {
		stopped.Store(true)
		return timer.Stop()
	}
}
