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
			if owns(tid) && setUrgent(tid) == nil {
				usual = before
			}
		}
	}
}

// owns reports whether a thread is one of this process. Where /proc shows another PID namespace,
// its numbers are those of other processes.
func owns(tid int) bool { return unix.Tgkill(os.Getpid(), tid, 0) == nil }

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
	now := *usual
	// An operator may have changed the nice value. To lower it again needs a right.
	if p, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		now.Nice = int32(20 - p) // as the system call encodes it
	}
	if err := unix.SchedSetAttr(0, &now, 0); err != nil {
		return os.NewSyscallError("sched_setattr", err)
	}
	defer func() { _ = setUrgent(0) }()
	return start()
}
