package election

import (
	"math/rand/v2"
	"time"
)

// UpTo returns a back-off whose waits grow from half a second up to longest, by half a second each.
// Each wait is then multiplied by a random factor from 0.75 to 1.25, so that candidates do not
// campaign at the same time.
func UpTo(longest time.Duration) Backoff { return upTo(longest) }

const step = 500 * time.Millisecond

type upTo time.Duration

// Duration returns the n-th wait, n from 0.
func (u upTo) Duration(n int) time.Duration {
	d := time.Duration(u)
	if n < int(d/step) {
		d = time.Duration(n+1) * step
	}
	return time.Duration((0.75 + 0.5*rand.Float64()) * float64(d)) //nolint:gosec // no secret
}
