package faults

import (
	"bytes"
	"math/rand/v2"

	"github.com/tenure-go/tenure/driver"
)

// pastLength is how many states of a key a stale read can go back.
const pastLength = 8

// past holds the states seen of each key, oldest first. No two states of a key there have the same
// version.
type past map[string][]driver.Entry

func (c *core) remember(key string, e driver.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.past.add(key, e)
}

func (p past) add(key string, e driver.Entry) {
	seen := p[key]
	for _, old := range seen {
		if old.Version == e.Version {
			return
		}
	}
	if len(seen) == pastLength {
		seen = seen[1:]
	}
	e.Value = bytes.Clone(e.Value)
	p[key] = append(seen, e)
}

// older gives the operation a state that was seen before the last, and reports whether there is
// one.
func (p past) older(o *operation, r *rand.Rand) bool {
	seen := p[o.key]
	if len(seen) < 2 {
		return false
	}
	o.older = seen[r.IntN(len(seen)-1)]
	o.older.Value = bytes.Clone(o.older.Value)
	return true
}
