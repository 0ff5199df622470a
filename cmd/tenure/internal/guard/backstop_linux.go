package guard

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure/clock"
	"golang.org/x/sys/unix"
)

// FindsOrphans is true where descendants whose parents have ended become children of the guard, and
// after its death those of the candidate.
const FindsOrphans = true

// backstop is what the kernel does if the guard does not act: two timers and the tripwire. See the
// package comment.
type backstop struct {
	// They send this process SIGCONT and SIGKILL.
	wakes, kills int32
	// the end of the tripwire that sends the signal; each command inherits it, which keeps it open
	trip   int
	mode   mode
	killer *killer
}

// sigevent has the kernel's layout, on machines of 64 and 32 bits.
type sigevent struct {
	value  uintptr
	signo  int32
	notify int32
	_      [64 - 8 - unsafe.Sizeof(uintptr(0))]byte
}

// newBackstop makes orphans become children of this process, and gives it the timers. Its error
// names the missing system call. It also makes a first PID namespace if commands need one.
func newBackstop(m mode, held, tied int) (*backstop, error) {
	if lookAt(os.Getpid()).parent == 0 {
		return nil, errors.New("find the processes of the command: /proc is missing; mount it")
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the child subreaper (PR_SET_CHILD_SUBREAPER): %w", err)
	}
	b := &backstop{mode: m, killer: newKiller()}
	if err := errors.Join(newTimer(unix.SIGCONT, &b.wakes), newTimer(unix.SIGKILL, &b.kills)); err != nil {
		return nil, err
	}
	var err error
	// stays open when a command is executed
	if b.trip, err = unix.FcntlInt(uintptr(tied), unix.F_DUPFD, high); err != nil {
		return nil, fmt.Errorf("keep the tripwire: %w", err)
	}
	if err = raise(held, b.trip+1); err != nil {
		return nil, fmt.Errorf("keep the tripwire: %w", err)
	}
	if b.contains() {
		n, err := newNamespace(m)
		if err != nil {
			return nil, err
		}
		n.discard()
	}
	// for people who look at the list of processes
	_ = os.WriteFile("/proc/self/comm", []byte("tenure-guard"), 0)
	return b, nil
}

// raise gives a file a higher number. When Linux kills a process, it closes the files with higher
// numbers first. So one end of the tripwire closes while the other is still open and can send the
// signal. That matters when the guard is the last process with the other end: the candidate is
// dead, and the command has closed its inherited files.
func raise(fd, least int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, least); err != nil {
		return err
	}
	return unix.Close(fd)
}

// bind makes the kernel kill the command itself when the guard ends.
func (b *backstop) bind(attr *syscall.SysProcAttr) { attr.Pdeathsig = unix.SIGKILL }

// tie makes the kernel kill the command's group when the guard ends.
func (b *backstop) tie(group int) error {
	fd := uintptr(b.trip)
	flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(fd, unix.F_SETFL, flags|unix.O_ASYNC)
	}
	if err == nil {
		_, err = unix.FcntlInt(fd, unix.F_SETSIG, int(unix.SIGKILL))
	}
	if err == nil {
		_, err = unix.FcntlInt(fd, unix.F_SETOWN, -group)
	}
	return err
}

// arm makes the kernel continue the guard before its next step is due, and then again and again,
// but not so often that this costs time. It makes the killer act when SIGKILL is due, and the
// kernel kill the guard later. All times count from the reading. With 0 for due or kill, that does
// not happen.
func (b *backstop) arm(now clock.Reading, next, due, kill time.Duration) {
	b.killer.at(now, due)
	_ = set(b.wakes, now.Boot+next-next/4, max(next/4, again))
	if kill > 0 {
		kill += now.Boot
	}
	_ = set(b.kills, kill, 0)
}

// disarm stops the timers and the tripwire, after the command and its descendants have ended.
func (b *backstop) disarm() {
	b.killer.at(clock.Reading{}, 0)
	b.killer.aim(nil)
	_ = set(b.wakes, 0, 0)
	_ = set(b.kills, 0, 0)
	_, _ = unix.FcntlInt(uintptr(b.trip), unix.F_SETOWN, 0)
}

// newTimer makes a timer that sends this process a signal.
func newTimer(s unix.Signal, timer *int32) error {
	event := sigevent{signo: int32(s)} // SIGEV_SIGNAL is 0
	// CLOCK_BOOTTIME goes on while the machine sleeps.
	_, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(timer)))
	if errno != 0 {
		return fmt.Errorf("make a timer: %w", errno)
	}
	if err := set(*timer, 0, 0); err != nil {
		return fmt.Errorf("set a timer: %w", err)
	}
	return nil
}

// set makes a timer fire at this time of CLOCK_BOOTTIME, and then at intervals unless these are 0.
// At 0 it never fires. If this works for a new timer, it cannot fail later.
func set(timer int32, at, interval time.Duration) error {
	const absolute = 1 // TIMER_ABSTIME
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at)), Interval: unix.NsecToTimespec(int64(interval))}
	_, _, errno := unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(timer), absolute, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

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
