package guard

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// usual is how the system scheduled this process before it was urgent; nil if it is not.
var usual *unix.SchedAttr

// becomeUrgent makes this process run before all that have no real-time priority, so that other
// work of a busy machine delays no step. The system allows it to root, with the capability
// CAP_SYS_NICE, and within RLIMIT_RTPRIO. Threads that start later inherit it.
func becomeUrgent() {
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil || before.Priority > 0 {
		return
	}
	for range 2 { // meanwhile a thread that was not urgent yet may have started another
		threads, _ := os.ReadDir("/proc/self/task")
		for _, thread := range threads {
			tid, _ := strconv.Atoi(thread.Name())
			if setUrgent(tid) == nil {
				usual = before
			}
		}
	}
}

// setUrgent gives a thread the lowest real-time priority; 0 is the calling thread. Several such
// threads take turns.
func setUrgent(tid int) error {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0)
}

// asUsual starts a process, which does not become urgent. The goroutine must be locked to its
// thread.
func asUsual(start func() error) error {
	if usual == nil {
		return start()
	}
	if err := unix.SchedSetAttr(0, usual, 0); err != nil {
		return os.NewSyscallError("sched_setattr", err)
	}
	defer func() { _ = setUrgent(0) }()
	return start()
}
