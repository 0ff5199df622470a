//go:build !linux

package machine

import (
	"errors"
	"os/exec"
	"time"
)

// Supported says whether this machine can be measured.
const Supported = false

var base = time.Now()

// Now is a monotonic clock of this process only.
func Now() int64 { return int64(time.Since(base)) }

// Pause is not supported.
func Pause(int) error { return errors.ErrUnsupported }

// Resume is not supported.
func Resume(int) error { return errors.ErrUnsupported }

// CPU is not supported: it returns 0.
func CPU() time.Duration { return 0 }

// Together does nothing: a killed program leaves its processes behind.
func Together(*exec.Cmd) {}

// Apart does nothing.
func Apart(*exec.Cmd) {}
