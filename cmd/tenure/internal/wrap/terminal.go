//go:build unix

package wrap

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// terminal is the process group that had the terminal before the command; 0 if it was not lent.
type terminal int

// lend gives the terminal to a command's process group, if this process has it. Then the command
// reads the keyboard and receives Ctrl-C as it would without a wrapper.
func lend(group int) terminal {
	owner, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil || owner != unix.Getpgrp() || unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group) != nil {
		return 0
	}
	_ = unix.Kill(-group, unix.SIGCONT) // it may be stopped for reading too soon
	return terminal(owner)
}

// back takes back the terminal. It ignores SIGTTOU, by which the system would stop a background
// process that does this.
func (t *terminal) back() {
	if *t == 0 {
		return
	}
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, int(*t))
	*t = 0
}
