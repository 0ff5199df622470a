package crew

import (
	"os"
	"os/exec"
	"syscall"
)

// CanFreeze reports whether processes can be frozen here.
const CanFreeze = false

var sigterm, sigstop, sigcont os.Signal

// separate keeps Ctrl-C from the process, since the program that starts it ends it in order.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
