package crew

import (
	"os/exec"
	"syscall"
)

// Separate puts a process that is not yet started into a session of its own, so that Ctrl-C reaches
// only the program that starts it, which ends its processes in order. If that program dies without
// doing so, the kernel kills them.
func Separate(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
}
