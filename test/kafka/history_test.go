//go:build integration

package kafka

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/twmb/franz-go/pkg/kfake"
)

// TestLinearizable lets clients read and write one cell while requests fail, connections hang and
// break, and the partition moves. One register must explain all answers.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	c := start(t, kfake.NumBrokers(3))
	relays := c.relays()
	var stores []*counted
	for range 2 {
		stores = append(stores, &counted{Store: c.open(c.direct())})
	}
	stores = append(stores, &counted{Store: c.open(c.through(relays))}, &counted{Store: c.open(c.through(relays))})
	c.trouble(4)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := history.New("cell")
	var all sync.WaitGroup
	var seen int64
	for i := range 8 {
		all.Go(func() {
			h.Play(ctx, stores[i%len(stores)], history.Client{ID: i, Attention: time.Second, Rand: rand.New(rand.NewPCG(uint64(i), 7))})
		})
	}
	all.Go(func() {
		c.shake(ctx, relays, func() bool {
			swaps, _, _ := tallyOf(stores)
			defer func() { seen = swaps }()
			return swaps > seen
		})
	})
	least := int64(50)
	if testing.Short() {
		least = 15
	}
	pause(ctx, 2*time.Second)
	eventually(t, "enough to prove something", func() bool {
		swaps, refusals, unknowns := tallyOf(stores)
		return swaps >= least && refusals >= least && unknowns >= 15
	})
	cancel()
	all.Wait()
	eventually(t, "a last read", func() bool {
		last, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, ok := h.Read(last, stores[0], 100)
		return ok
	})
	h.Check(t, history.Rules{})
	reads, swaps, refusals, unknowns := h.Tally()
	t.Logf("%d reads, %d swaps, %d refusals, %d open outcomes", reads, swaps, refusals, unknowns)
}

// counted counts the outcomes of writes to a store.
type counted struct {
	*kafkalog.Store
	swaps, refusals, unknowns atomic.Int64
}

func (c *counted) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	v, err := c.Store.CompareAndSwap(ctx, key, prev, value)
	switch outcome(err) {
	case "applied":
		c.swaps.Add(1)
	case "conflict":
		c.refusals.Add(1)
	default:
		c.unknowns.Add(1)
	}
	return v, err
}

func tallyOf(stores []*counted) (swaps, refusals, unknowns int64) {
	for _, c := range stores {
		swaps, refusals, unknowns = swaps+c.swaps.Load(), refusals+c.refusals.Load(), unknowns+c.unknowns.Load()
	}
	return swaps, refusals, unknowns
}
