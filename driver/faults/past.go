package faults

import (
	"bytes"
	"math/rand/v2"

	"github.com/tenure-go/tenure/driver"
)

// maxSeenStates is how many states of a key are kept for stale reads.
const maxSeenStates = 8

// seenStates holds the latest states of each key that were seen, oldest first. No two of them have
// the same version.
type seenStates map[string][]driver.Entry

func (c *core) remember(key string, e driver.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seenStates.add(key, e)
}

func (p seenStates) add(key string, e driver.Entry) {
	seen := p[key]
	for _, old := range seen {
		if old.Version == e.Version {
			return
		}
	}
	if len(seen) == maxSeenStates {
		seen = seen[1:]
	}
	e.Value = bytes.Clone(e.Value)
	p[key] = append(seen, e)
}

// older sets the answer of a stale read: a state that was seen before the last one. It reports
// whether there is one.
func (p seenStates) older(o *operation, r *rand.Rand) bool {
	seen := p[o.key]
	if len(seen) < 2 {
		return false
	}
	o.older = seen[r.IntN(len(seen)-1)]
	o.older.Value = bytes.Clone(o.older.Value)
	return true
}
