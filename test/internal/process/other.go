//go:build !unix

package process

import (
	"errors"
	"os"
	"os/exec"
)

func pause(int) error    { return errors.ErrUnsupported }
func resume(int) error   { return errors.ErrUnsupported }
func isGone(error) bool  { return false }
func children(int) []int { return nil }

// has reports whether the process runs. This system does not show its command line.
func has(pid int, _ string) bool {
	_, err := os.FindProcess(pid)
	return err == nil
}

func (*Process) killFamily(int) error { return errors.ErrUnsupported }

// As does nothing: the process runs as the user of this one.
func As(*exec.Cmd, string) error { return nil }

// IDs returns -1: no process changes to another user.
func IDs(string) (uid, gid int, err error) { return -1, -1, nil }
