//go:build integration

package nats

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

// trouble is a fault of servers while clients contend for a cell.
type trouble struct {
	name, why string
	make      func(a *arena, ctx context.Context) // again and again, until enough has happened
	least     time.Duration
	// needs is the number of unknown outcomes that the run needs to prove anything.
	needs int
	rules history.Rules
	// quick troubles also run in the short pass.
	quick bool
}

// worth reports whether enough has happened.
func (tr trouble) worth(h *history.History) bool {
	_, swaps, refusals, unknowns := h.Tally()
	return swaps >= 20 && refusals >= 10 && unknowns >= tr.needs
}

// rules returns the rules of a cluster. A server that believes that it leads still answers reads
// from its own copy. It refuses a write, or keeps it unacknowledged, while another server that also
// receives the write applies it.
func rules(f fault) history.Rules {
	return history.Rules{Hasty: true, Replayed: f.believes, Stale: f.believes}
}

func troubles() []trouble {
	all := []trouble{{"rolling restart", "each server hands over what it leads",
		func(a *arena, _ context.Context) { a.roll() }, 15 * time.Second, 0, rules(fault{}), false}}
	for _, f := range faults() {
		all = append(all, trouble{"leader " + f.name, "what was acknowledged is on one more server, and what was not may come to light later",
			func(a *arena, ctx context.Context) {
				s := a.leader()
				f.fall(a, s)
				sleep(ctx, 13*time.Second)
				f.rise(a, s)
				a.whole()
			}, 18 * time.Second, 4, rules(f), f.name == "killed"})
	}
	return all
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// TestRegisterIsLinearizable: elections rely on one property of a cell. It is one register for all
// clients.
func TestRegisterIsLinearizable(t *testing.T) {
	for _, tr := range troubles() {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("%s,seed=%d", tr.name, seed), func(t *testing.T) {
			if !tr.quick {
				soak(t)
			}
			a := newArena(t)
			h := a.play(tr, seed, func(n int) driver.Store { return a.open(n) })
			reads, swaps, refusals, unknowns := h.Tally()
			t.Logf("%d reads, %d swaps, %d refusals, %d open outcomes", reads, swaps, refusals, unknowns)
			if !tr.worth(h) {
				t.Errorf("this run proves little: %s", tr.why)
			}
			h.Check(t, tr.rules)
		})
	}
}

// play lets clients contend, two over each server.
func (a *arena) play(tr trouble, seed uint64, open func(n int) driver.Store) *history.History {
	a.tb.Helper()
	h := history.New("cell")
	ctx, cancel := history.Lasting(tr.least, func() bool { return tr.worth(h) })
	defer cancel()
	var playing sync.WaitGroup
	for i := range 2 * natsd.Members {
		store := open(i)
		c := history.Client{ID: i, Attention: 500 * time.Millisecond, Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		playing.Go(func() { h.Play(ctx, store, c) })
	}
	sleep(ctx, time.Second)
	for tr.make(a, ctx); ctx.Err() == nil && !tr.worth(h); {
		tr.make(a, ctx)
	}
	playing.Wait()
	a.must(a.Mend(a.context()))
	a.whole()
	last := a.open(0)
	a.eventually("a last read", func(ctx context.Context) error {
		if _, ok := h.Read(ctx, last, 100); !ok {
			return fmt.Errorf("it failed")
		}
		return nil
	})
	return h
}

// past is a planted mistake: it reads from any copy.
type past struct {
	*natskv.Store
	kv jetstream.KeyValue
}

// Read is a Direct Get, which the nearest copy answers.
func (p past) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := p.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return p.Store.Read(ctx, key)
	}
	if err != nil {
		return driver.Entry{}, err
	}
	return driver.Entry{Value: e.Value(), Version: driver.Version(fmt.Sprint(e.Revision()))}, nil
}

// TestStaleReadsAreDetected: clients that read from any copy are detected when one copy is cut off.
// Without this, the test above would prove nothing.
func TestStaleReadsAreDetected(t *testing.T) {
	soak(t)
	// A client may happen to read nothing there while that copy is behind.
	wait.Until(t, "a read shows an earlier state", func() (seen bool) {
		t.Run("try", func(t *testing.T) { seen = pastIsSeen(t) })
		return seen
	})
}

func pastIsSeen(t *testing.T) bool {
	a := newArena(t)
	another := trouble{make: func(a *arena, ctx context.Context) {
		a.Part(a.Others(a.leader())[0])
		<-ctx.Done()
	}, least: 3 * time.Second}
	h := a.play(another, rand.Uint64(), func(n int) driver.Store {
		kv, err := a.connect(n).KeyValue(a.context(), a.bucket)
		a.must(err)
		return past{a.open(n), kv}
	})
	return len(h.Faults(rules(fault{}))) > 0
}
