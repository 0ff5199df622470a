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
	slots chan struct{}
}

// limitReads returns the store with at most maxReads reads at once, and with all its abilities.
func limitReads(s driver.Store) driver.Store {
	return &limitedReads{s, make(chan struct{}, maxReads)}
}

// Abilities returns those of the store. Only reads pass through this one.
func (f *limitedReads) Abilities() driver.Abilities { return driver.AbilitiesOf(f.Store) }

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
