package demo

import (
	"context"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/driver"
)

// telling is a store that does not push. So that the demo need not poll it, the candidate reports
// its writes.
type telling struct {
	driver.Store
	driver.Bounded
	reports *reporter
}

// CompareAndSwap is the store's. No process can see the record before the store has it, and none
// that polls can be known to see it before its writer hears that it was written.
func (t *telling) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	version, err := t.Store.CompareAndSwap(ctx, key, prev, value)
	if err == nil {
		t.reports.send(report{At: stamp.Now(), Wrote: value})
	}
	return version, err
}
