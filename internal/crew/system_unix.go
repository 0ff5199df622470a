//go:build unix

package crew

import (
	"os"
	"syscall"
)

// CanFreeze reports whether processes can be frozen here.
const CanFreeze = true

var sigterm, sigstop, sigcont os.Signal = syscall.SIGTERM, syscall.SIGSTOP, syscall.SIGCONT
