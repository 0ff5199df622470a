// Package update replaces the value of a key in a store by one read and one compare-and-swap.
package update

import (
	"context"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// Once replaces the value in the store by the result of change, and replaces nothing if change
// returns an error. It returns protocol.ErrTimeout if more time than within has passed since it
// began to read: this process may have been stopped in between, and versions recur where a store
// begins its history again (L3a).
func Once(ctx context.Context, store driver.Store, c clock.Clock, key string, within time.Duration,
	change func(driver.Entry) ([]byte, error),
) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	asOf := c.Now()
	entry, err := store.Read(ctx, key)
	if err != nil {
		return err
	}
	value, err := change(entry)
	if err != nil {
		return err
	}
	if c.Now().LeaderSince(asOf.Instant) >= within {
		return protocol.ErrTimeout
	}
	_, err = store.CompareAndSwap(ctx, key, entry.Version, value)
	return err
}
