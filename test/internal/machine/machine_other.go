//go:build !linux

package machine

import "time"

// Supported says whether this machine can be measured.
const Supported = false

var base = time.Now()

// Now is a monotonic clock of this process only.
func Now() int64 { return int64(time.Since(base)) }

// CPU is not supported: it returns 0.
func CPU() time.Duration { return 0 }
