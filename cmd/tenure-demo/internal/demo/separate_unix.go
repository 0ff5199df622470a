//go:build unix && !linux

package demo

import (
	"os/exec"
	"syscall"
)

// separate puts the process into a group of its own, so that Ctrl-C reaches only the demo, which
// ends the candidates in order. If the demo dies without doing so, they read the end of their
// standard input. The system sends SIGHUP and SIGCONT to one that is frozen, because its group has
// lost the parent.
func separate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
