//go:build unix

package guard

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// lend gives the terminal to the command's process group, which has stopped for want of it, if the
// candidate has it. From then on the keys that send signals reach the command alone. So a command
// that does not use the terminal never has it, and the candidate hears a second Ctrl-C.
func (j *job) lend() {
	tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(tty) }()
	owner, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	if err != nil {
		return
	}
	if candidate, err := unix.Getpgid(os.Getppid()); owner != j.pid && (err != nil || owner != candidate) {
		return // another program has it
	}
	signal.Ignore(unix.SIGTTOU) // the system would stop this process
	defer signal.Reset(unix.SIGTTOU)
	if unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, j.pid) == nil {
		j.signalGroup(unix.SIGCONT)
	}
}
