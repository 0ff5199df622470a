//go:build unix

package demo

import "syscall"

// canPause is true: processes can be frozen here.
const canPause = true

// askToEnd lets the candidate release its lease.
func (p *process) askToEnd() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

func (p *process) pause() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }
