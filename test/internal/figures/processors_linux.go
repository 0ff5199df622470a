package figures

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// processors returns the processors that this process may use.
func processors() (all []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return []int{0}
	}
	for i := 0; len(all) < set.Count(); i++ {
		if set.IsSet(i) {
			all = append(all, i)
		}
	}
	return all
}

// stay keeps the goroutine on its thread, and the thread on a processor, until leave. Without leave
// the thread would end with the goroutine, and the kernel would kill the servers that this thread
// had started and that are to die with it (Pdeathsig).
func stay(processor int) (leave func()) {
	runtime.LockOSThread()
	var before, one unix.CPUSet
	if unix.SchedGetaffinity(0, &before) != nil {
		return runtime.UnlockOSThread
	}
	one.Set(processor)
	_ = unix.SchedSetaffinity(0, &one) // without it, the thread sleeps on any processor
	return func() {
		_ = unix.SchedSetaffinity(0, &before)
		runtime.UnlockOSThread()
	}
}

// sleep sleeps in the kernel, since a timer of the runtime may fire on another thread.
func sleep(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&t, nil)
}
