package s3d

import (
	"os/exec"
	"syscall"
)

// together lets the process end with this one, also where this one is killed.
func together(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
