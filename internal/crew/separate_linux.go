package crew

import (
	"os/exec"
	"syscall"
)

// separate puts the process into a session of its own, so that Ctrl-C reaches only the program that
// starts it, which ends its processes in order. If that program dies without doing so, the kernel
// kills them.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
