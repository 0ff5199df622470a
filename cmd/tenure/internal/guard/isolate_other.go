//go:build unix && !linux

package guard

import "os/exec"

// Isolate makes Start return an error: only Linux has PID namespaces.
func Isolate(command *exec.Cmd) { command.Args = append(command.Args, string(asRoot)) }

// Uncovered returns the processes of a command that may outlive tenure, as a sentence.
func Uncovered(bool) string {
	return "the command is not ended if tenure and its guard are killed together, and processes that leave its process group are never ended: Linux has more ways to end them"
}

func (l *lines) contains() bool                        { return false }
func (l *lines) beginContained(*Command) (work, error) { return nil, nil }

func beInit() error { return errAlone }
