//go:build unix

package wrap

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// terminal is the one that was lent to the command; 0 if none was.
type terminal int

// lend gives the terminal to a command's process group if this process has it. Then the command can
// be typed to and receives Ctrl-C as it would without a wrapper.
func lend(group int) terminal {
	owner, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil || owner != unix.Getpgrp() || unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group) != nil {
		return 0
	}
	_ = unix.Kill(-group, unix.SIGCONT) // it may have been stopped for reading too soon
	return terminal(owner)
}

// back takes the terminal back, which the system would stop a background process for.
func (t *terminal) back() {
	if *t == 0 {
		return
	}
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, int(*t))
	*t = 0
}
