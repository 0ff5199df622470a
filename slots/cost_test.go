package slots_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/slots"
)

// counted counts the requests of a store.
type counted struct {
	driver.Store
	reads, writes *atomic.Int64
}

func (c counted) Read(ctx context.Context, key string) (driver.Entry, error) {
	c.reads.Add(1)
	return c.Store.Read(ctx, key)
}

func (c counted) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	c.writes.Add(1)
	return c.Store.CompareAndSwap(ctx, key, prev, value)
}

func (c counted) Abilities() driver.Abilities { return driver.AbilitiesOf(c.Store) }

// TestCost compares the requests of members at rest with docs/slots.md. Only the leaders write,
// once in each Renew.
func TestCost(t *testing.T) {
	if testing.Short() {
		t.Skip("the figures do not depend on how the test is built")
	}
	const l = 15 * time.Second // the default
	for _, c := range []struct {
		members, slots int
		pushed, polled float64 // the most reads per minute of all members
	}{
		{3, 3, 0, 49},
		{10, 3, 0, 135},
		{30, 10, 0, 1550},
		{3, 10, 206, 320},
	} {
		for kind, open := range map[string]func() driver.Store{"pushed": watched, "polled": polled} {
			t.Run(fmt.Sprintf("%d members, %d slots/%s", c.members, c.slots, kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var reads, writes atomic.Int64
					p := newPool(t, counted{open(), &reads, &writes})
					p.joinWith(func(cfg *slots.Config) { cfg.Election = tenure.Config{ID: cfg.Election.ID} }, c.slots, ids("m", c.members)...)
					time.Sleep(10 * l)
					reads.Store(0)
					writes.Store(0)
					const minutes = 5
					time.Sleep(minutes * time.Minute)
					perMinute, renewals := float64(reads.Load())/minutes, float64(writes.Load())/minutes
					t.Logf("%.1f reads and %.1f writes per minute", perMinute, renewals)
					most := c.pushed
					if kind == "polled" {
						most = c.polled
					}
					if perMinute > most {
						t.Errorf("%.1f reads per minute, more than %v", perMinute, most)
					}
					if least := float64(12 * min(c.members, c.slots)); renewals < 0.98*least || renewals > 1.02*least {
						t.Errorf("%.1f writes per minute, not %v", renewals, least)
					}
				})
			})
		}
	}
}
