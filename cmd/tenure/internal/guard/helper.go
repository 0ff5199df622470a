//go:build unix

package guard

import (
	"os/exec"
	"syscall"
)

// StartHelper starts a command that no guard watches, such as a health check, as the leader of a
// process group. Sweep and Bury leave it alone. Call ForgetHelper when it was waited for.
func StartHelper(c *exec.Cmd) error {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	alive.Lock()
	defer alive.Unlock()
	if err := c.Start(); err != nil {
		return err
	}
	alive.guards[c.Process.Pid] = true
	return nil
}

// ForgetHelper ends the work of StartHelper. It kills what the command has left in its process
// group, and reaps its descendants that have ended.
func ForgetHelper(c *exec.Cmd) {
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	forget(c.Process.Pid)
	Bury()
}
