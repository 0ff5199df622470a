//go:build unix && !linux

package demo

import (
	"os/exec"
	"syscall"
)

// separate puts the process into a group of its own, so that Ctrl-C reaches the demo alone, which
// ends the candidates in order. If the demo dies without doing so, they see the end of their
// standard input; and one that is frozen is woken and hung up by the system, because its group has
// lost the parent.
func separate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
