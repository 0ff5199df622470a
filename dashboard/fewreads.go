package dashboard

import (
	"context"

	"github.com/tenure-go/tenure/driver"
)

// maxReads bounds the reads that are under way at once on a store that candidates use, too. With
// more reads, renewals could wait for a connection.
const maxReads = 8

// limitedReads is a store that makes at most maxReads reads at once.
type limitedReads struct {
	driver.Store
	driver.Bounded
	slots chan struct{}
}

// limitReads returns the tapped store with at most maxReads reads at once. It stays a
// driver.Bounded, and a driver.Watcher if it is one.
func limitReads(tapped driver.Store) driver.Store {
	few := &limitedReads{Store: tapped, slots: make(chan struct{}, maxReads)}
	few.Bounded, _ = tapped.(driver.Bounded) // a tap always is
	if w, ok := tapped.(driver.Watcher); ok {
		return struct {
			*limitedReads
			driver.Watcher
		}{few, w}
	}
	return few
}

// Read waits for a free slot and reads the store.
func (f *limitedReads) Read(ctx context.Context, key string) (driver.Entry, error) {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return driver.Entry{}, ctx.Err()
	}
	defer func() { <-f.slots }()
	return f.Store.Read(ctx, key)
}
