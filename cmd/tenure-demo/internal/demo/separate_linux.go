package demo

import (
	"os/exec"
	"syscall"
)

// separate puts the process into a group of its own, so that Ctrl-C reaches only the demo, which
// ends the candidates in order. If the demo dies without doing so, the kernel kills them, even one
// that is frozen and could not read the end of its standard input. The kernel does that when the
// thread that started them ends, so the director stays on one thread.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
