//go:build unix && !linux

package crew

import (
	"os/exec"
	"syscall"
)

// Separate puts a process that is not yet started into a group of its own, so that Ctrl-C reaches
// only the program that starts it, which ends its processes in order. If that program dies without
// doing so, those that were hired read the end of their standard input. The system sends SIGHUP and
// SIGCONT to a frozen one, because its group has lost the parent.
func Separate(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}
