package demo

import (
	"context"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/driver"
)

// reportingStore is a store that does not push. It reports the candidate's writes, so that the demo
// need not poll.
type reportingStore struct {
	driver.Store
	reports *reporter
}

// Abilities returns those of the store. Only writes pass through this one.
func (t *reportingStore) Abilities() driver.Abilities { return driver.AbilitiesOf(t.Store) }

// CompareAndSwap calls the store, and reports a successful write. The stamp is the time of the
// answer: other processes may have read the record a little earlier, but not before the write.
func (t *reportingStore) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	version, err := t.Store.CompareAndSwap(ctx, key, prev, value)
	if err == nil {
		t.reports.send(report{At: stamp.Now(), Wrote: value})
	}
	return version, err
}
