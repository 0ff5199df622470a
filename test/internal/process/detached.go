package process

import (
	"os"
	"strconv"
	"strings"
)

// note writes the number of a process that other processes look for.
func (p *Process) note(pid int) error {
	if p.PIDFile == "" {
		return nil
	}
	return os.WriteFile(p.PIDFile, []byte(strconv.Itoa(pid)), 0o600)
}

// Find looks for a Detached process that another process has started.
func (p *Process) Find() {
	written, err := os.ReadFile(p.PIDFile)
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(written)))
	if err != nil || !has(pid, p.Mark) {
		return
	}
	p.process, _ = os.FindProcess(pid)
}
