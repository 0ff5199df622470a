package guard

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure/clock"
	"golang.org/x/sys/unix"
)

// FindsOrphans is true where descendants whose parents have ended become children of the guard, and
// after its death those of the candidate.
const FindsOrphans = true

// lines are the timer and the tripwire, which the kernel holds: see the package comment.
type lines struct {
	timer int32
	// the end of the tripwire that sends the signal; each command inherits it, which keeps it open
	trip int
}

// sigevent has the kernel's layout, on machines of 64 and 32 bits.
type sigevent struct {
	value  uintptr
	signo  int32
	notify int32
	_      [64 - 8 - unsafe.Sizeof(uintptr(0))]byte
}

// newLines makes orphans become children of this process, and gives it a timer that kills it. Its
// error names the missing system call.
func newLines(held, tied int) (*lines, error) {
	if parentOf(os.Getpid()) == 0 {
		return nil, errors.New("find the processes of the command: /proc is missing; mount it")
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the child subreaper (PR_SET_CHILD_SUBREAPER): %w", err)
	}
	l := &lines{}
	event := sigevent{signo: int32(unix.SIGKILL)} // SIGEV_SIGNAL is 0
	// CLOCK_BOOTTIME goes on while the machine sleeps.
	_, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&l.timer)))
	if errno != 0 {
		return nil, fmt.Errorf("make a timer: %w", errno)
	}
	err := l.set(unix.ItimerSpec{})
	if err != nil {
		return nil, fmt.Errorf("set a timer: %w", err)
	}
	// stays open when a command is executed
	if l.trip, err = unix.FcntlInt(uintptr(tied), unix.F_DUPFD, high); err != nil {
		return nil, fmt.Errorf("keep the tripwire: %w", err)
	}
	if err = raise(held, l.trip+1); err != nil {
		return nil, fmt.Errorf("keep the tripwire: %w", err)
	}
	// for people who look at the list of processes
	_ = os.WriteFile("/proc/self/comm", []byte("tenure-guard"), 0)
	return l, nil
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
func (l *lines) bind(attr *syscall.SysProcAttr) { attr.Pdeathsig = unix.SIGKILL }

// tie makes the kernel kill the command's group when the guard ends.
func (l *lines) tie(group int) error {
	fd := uintptr(l.trip)
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

// arm makes the kernel kill the guard after this time, counted from the reading.
func (l *lines) arm(now clock.Reading, after time.Duration) {
	// newLines has checked that this works
	_ = l.set(unix.ItimerSpec{Value: unix.NsecToTimespec(int64(now.Boot + after))})
}

// disarm stops the timer and the tripwire, after the command and its descendants have ended.
func (l *lines) disarm() {
	_ = l.set(unix.ItimerSpec{})
	_, _ = unix.FcntlInt(uintptr(l.trip), unix.F_SETOWN, 0)
}

func (l *lines) set(at unix.ItimerSpec) error {
	const absolute = 1 // TIMER_ABSTIME
	_, _, errno := unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(l.timer), absolute, uintptr(unsafe.Pointer(&at)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
