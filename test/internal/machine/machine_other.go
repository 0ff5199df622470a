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

// Now is monotonic, and within this process only.
func Now() int64 { return int64(time.Since(base)) }

// Pause is not to be had.
func Pause(int) error { return errors.ErrUnsupported }

// Resume is not to be had.
func Resume(int) error { return errors.ErrUnsupported }

// CPU is not to be had.
func CPU() time.Duration { return 0 }

// Together can do nothing here: a killed program leaves its processes behind.
func Together(*exec.Cmd) {}

// Apart can do nothing here.
func Apart(*exec.Cmd) {}
