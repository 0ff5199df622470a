package demo

import (
	"os/exec"
	"syscall"
)

// canPause: processes cannot be frozen here.
const canPause = false

// separate keeps Ctrl-C from the candidates, which the demo ends in order.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// askToEnd lets the candidate release its lease. There is no SIGTERM, so its standard input ends.
func (p *process) askToEnd() { _ = p.in.Close() }

func (p *process) pause() {}

func (p *process) resume() {}
