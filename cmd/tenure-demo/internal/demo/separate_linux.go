package demo

import (
	"os/exec"
	"syscall"
)

// separate puts the process into a group of its own, so that Ctrl-C reaches the demo alone, which
// ends the candidates in order. If the demo dies without doing so, the kernel kills them, even one
// that is frozen and could not see the end of its standard input. It does that when the thread ends
// that started them, so the director keeps to one thread.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
