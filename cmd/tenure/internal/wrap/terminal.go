//go:build unix

package wrap

import (
	"errors"
	"os/signal"

	"golang.org/x/sys/unix"
)

// unsuspended keeps Ctrl-Z from stopping this process until the returned function is called: the
// time of the lease would go on.
func unsuspended() (until func()) {
	signal.Ignore(unix.SIGTSTP)
	return func() { signal.Reset(unix.SIGTSTP) }
}

// reclaim takes the terminal back if the guard has lent it to a command that is gone. It ignores
// SIGTTOU, by which the system would stop a background process that does this.
func reclaim() {
	tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(tty) }()
	owner, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	if err != nil || !errors.Is(unix.Kill(-owner, 0), unix.ESRCH) {
		return
	}
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, unix.Getpgrp())
}
