package guard

import (
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/clock"
	"golang.org/x/sys/unix"
)

// killer sends SIGKILL at the deadline, from a thread of its own that runs before all programs
// without real-time priority: on a machine whose processors are all busy, the guard itself may wait
// for its turn for more than a second. The system allows the priority to root, with the capability
// CAP_SYS_NICE, and within RLIMIT_RTPRIO.
//
// The thread does nothing else. A thread that reaps a process, or looks at /proc, may wait in the
// kernel without sleeping, for a thread that gets no turn before one with this priority. It takes
// no lock, since the guard may wait for its turn while it holds one. For the same reason there must
// be more of what Go calls processors than other threads use at a time.
type killer struct {
	timer    int // a timerfd
	deadline atomic.Pointer[deadline]
	targets  atomic.Pointer[targets]
}

// deadline is a time after a reading of the clocks.
type deadline struct {
	from  clock.Reading
	after time.Duration
}

// targets are the processes of a command, as far as they are known.
type targets struct {
	group int   // 0: none
	found []int // pidfds of processes outside of the group
}

// spareProcessors is more than the number of threads of the guard that run at a time.
const spareProcessors = 8

// mostFound bounds the number of open files. The guard itself kills any number of processes.
const mostFound = 256

// newKiller returns nil where the system lacks a call that it needs, such as Linux before 5.3.
func newKiller() *killer {
	self, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return nil
	}
	_ = unix.Close(self)
	timer, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	runtime.GOMAXPROCS(runtime.NumCPU() + spareProcessors)
	k := &killer{timer: timer}
	go k.run()
	return k
}

func (k *killer) run() {
	runtime.LockOSThread()
	_ = os.WriteFile("/proc/thread-self/comm", []byte(killerName), 0) // for people
	// the lowest priority of those that run before all others
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0)
	var times [8]byte
	for {
		switch _, err := unix.Read(k.timer, times[:]); err {
		case nil:
			k.kill(clock.System{}.Now())
		case unix.EINTR:
		default:
			return
		}
	}
}

const killerName = "tenure-killer"

// kill sends SIGKILL unless the deadline is later, has been put off or removed.
func (k *killer) kill(now clock.Reading) {
	d, t := k.deadline.Load(), k.targets.Load()
	if d == nil || t == nil {
		return
	}
	if left := d.after - now.LeaderSince(d.from.Instant); left > 0 {
		k.wait(left)
		return
	}
	if t.group > 0 {
		_ = unix.Kill(-t.group, unix.SIGKILL)
	}
	for _, process := range t.found {
		_ = unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0)
	}
}

// at sets the deadline. With 0 there is none.
func (k *killer) at(now clock.Reading, after time.Duration) {
	if k == nil {
		return
	}
	if after <= 0 {
		k.deadline.Store(nil)
		return
	}
	k.deadline.Store(&deadline{now, after})
	k.wait(after)
}

func (k *killer) wait(d time.Duration) {
	_ = unix.TimerfdSettime(k.timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
}

// aim chooses the processes of a job, as far as a search has found them; nil: none.
func (k *killer) aim(j *job) {
	if k == nil {
		return
	}
	var next *targets
	if j != nil {
		next = &targets{}
		if !j.reaped {
			next.group = j.pid
		}
		for f := range j.outside() {
			if len(next.found) == mostFound {
				break
			}
			if fd, err := f.open(); err == nil {
				next.found = append(next.found, fd)
			}
		}
	}
	if last := k.targets.Swap(next); last != nil {
		for _, fd := range last.found {
			_ = unix.Close(fd)
		}
	}
}
