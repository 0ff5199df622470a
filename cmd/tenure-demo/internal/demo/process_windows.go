package demo

import (
	"os/exec"
	"syscall"
)

// canPause is false: processes cannot be frozen here.
const canPause = false

// separate keeps Ctrl-C from the candidates, since the demo ends them in order.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// askToEnd lets the candidate release its lease. There is no SIGTERM, so it closes the standard
// input of the candidate.
func (p *process) askToEnd() { _ = p.in.Close() }

func (p *process) pause() {}

func (p *process) resume() {}
