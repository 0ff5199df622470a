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

// FindsOrphans says that descendants whose parents have ended become children of the guard, and
// then of the candidate.
const FindsOrphans = true

// lines are those that the kernel holds: see the package comment.
type lines struct {
	timer int32
	// the end of the tripwire that commands inherit, so that it is there as long as any of them is
	trip int
}

// sigevent is the kernel's, on machines of 64 and 32 bits.
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
		return nil, errors.New("look for what came of the command: /proc is not there")
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the one to whom orphans come: %w", err)
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
	// not closed when a command is executed
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
// numbers first. So one end of the tripwire closes while the other is still open to report it, also
// where the guard is the last process that has the other end: when the candidate is dead and the
// command has closed its inherited files.
func raise(fd, least int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, least); err != nil {
		return err
	}
	return unix.Close(fd)
}

// bind has the kernel kill the command itself when the guard ends.
func (l *lines) bind(attr *syscall.SysProcAttr) { attr.Pdeathsig = unix.SIGKILL }

// tie has it kill the command's group.
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

// arm has the kernel kill the guard after this time, counted from the reading.
func (l *lines) arm(now clock.Reading, after time.Duration) {
	// as newLines could
	_ = l.set(unix.ItimerSpec{Value: unix.NsecToTimespec(int64(now.Boot + after))})
}

// disarm is for when nothing is left that could be killed.
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
