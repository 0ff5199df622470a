//go:build unix && !linux

package guardtest

import (
	"errors"
	"syscall"
)

func runs(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
