package dashboard

import (
	"context"

	"github.com/tenure-go/tenure/driver"
)

// maxReads is how many reads of a store that is shared with candidates are under way at once. Their
// renewals would wait behind more in a pool of connections.
const maxReads = 8

// fewReads is a store, with its limits, that makes few reads at once.
type fewReads struct {
	driver.Store
	driver.Bounded
	slots chan struct{}
}

// withFewReads returns a tapped store with few reads at once, and with its optional abilities.
func withFewReads(tapped driver.Store) driver.Store {
	few := &fewReads{Store: tapped, slots: make(chan struct{}, maxReads)}
	few.Bounded, _ = tapped.(driver.Bounded) // a tap always is
	if w, ok := tapped.(driver.Watcher); ok {
		return struct {
			*fewReads
			driver.Watcher
		}{few, w}
	}
	return few
}

// Read is the store's, once there is room.
func (f *fewReads) Read(ctx context.Context, key string) (driver.Entry, error) {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return driver.Entry{}, ctx.Err()
	}
	defer func() { <-f.slots }()
	return f.Store.Read(ctx, key)
}
