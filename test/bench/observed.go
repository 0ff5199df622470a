package main

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// observed reports every write before it is sent, so that of a killed process it is known what it sent last, and again
// when it was applied.
type observed struct {
	*natskv.Store
	say func(report)
}

// CompareAndSwap is the store's, between two reports.
func (o observed) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	r := report{What: sending, Election: key, Prev: string(prev), Released: released(value), At: machine.Now()}
	o.say(r)
	version, err := o.Store.CompareAndSwap(ctx, key, prev, value)
	if err == nil {
		r.What, r.Version = wrote, string(version)
		o.say(r)
	}
	return version, err
}

func released(value []byte) bool {
	var record struct{ Released bool }
	return json.Unmarshal(value, &record) == nil && record.Released
}

// reporter writes one line for each report, in one call, so that nothing of it stays behind in a killed process.
func reporter(out io.Writer) func(report) {
	var mu sync.Mutex
	lines := json.NewEncoder(out)
	return func(r report) {
		mu.Lock()
		defer mu.Unlock()
		_ = lines.Encode(r) // it fails only when the parent is gone
	}
}
