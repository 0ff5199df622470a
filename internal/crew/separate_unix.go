//go:build unix && !linux

package crew

import (
	"os/exec"
	"syscall"
)

// separate puts the process into a group of its own, so that Ctrl-C reaches only the program that
// starts it, which ends its processes in order. If that program dies without doing so, those that
// were hired read the end of their standard input. The system sends SIGHUP and SIGCONT to a frozen
// one, because its group has lost the parent.
func separate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
