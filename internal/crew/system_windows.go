package crew

import (
	"os"
	"os/exec"
	"syscall"
)

// CanFreeze reports whether processes can be frozen here.
const CanFreeze = false

var sigterm, sigstop, sigcont os.Signal

// Separate keeps Ctrl-C from a process that is not yet started, since the program that starts it
// ends it in order.
func Separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
