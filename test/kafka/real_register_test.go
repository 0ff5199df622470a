//go:build integration

package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/history"
)

// realRegime is a fault of brokers while clients contend for a cell.
type realRegime struct {
	name, why string
	trouble   func(b *brokers, ctx context.Context, leader int)
	lasts     time.Duration
	// needs is the number of unknown outcomes, and of successful swaps after the trouble, that the
	// run needs to prove anything.
	needs int64
}

func realRegimes() []realRegime {
	other := func(leader int) int { return leader%3 + 1 }
	return []realRegime{
		{"contended", "many clients alone", nil, 6 * time.Second, 0},
		{"the leader is killed", "what was acknowledged is on two more brokers, and what was not may come to light later",
			func(b *brokers, ctx context.Context, leader int) { b.must(b.Kill(leader)) }, 16 * time.Second, 4},
		{"the leader is frozen, and goes on", "it believes for a moment that it leads still",
			func(b *brokers, ctx context.Context, leader int) {
				b.must(b.Pause(leader))
				pause(ctx, 14*time.Second)
				b.must(b.Resume(leader))
			}, 20 * time.Second, 4},
		{"another broker is killed", "writes wait until it is no more counted on",
			func(b *brokers, ctx context.Context, leader int) { b.must(b.Kill(other(leader))) }, 14 * time.Second, 0},
		{"another broker is frozen, and goes on", "writes wait until it is no more counted on",
			func(b *brokers, ctx context.Context, leader int) {
				b.must(b.Pause(other(leader)))
				pause(ctx, 12*time.Second)
				b.must(b.Resume(other(leader)))
			}, 16 * time.Second, 4},
		{"rolling restart", "each broker hands over what it leads",
			func(b *brokers, ctx context.Context, _ int) { b.roll() }, 16 * time.Second, 0},
	}
}

func (b *brokers) must(err error) {
	b.tb.Helper()
	if err != nil {
		b.tb.Error(err)
	}
}

// roll restarts all brokers gracefully, one after another, each when the copies are complete again.
func (b *brokers) roll() {
	b.tb.Helper()
	for n := 1; n <= 3; n++ {
		b.must(b.Stop(n))
		b.must(b.Start(n))
		b.must(b.Complete(b.context()))
	}
}

// TestRealRegisterIsLinearizable: elections rely on one property of a cell. It is one register for
// all clients.
func TestRealRegisterIsLinearizable(t *testing.T) {
	regimes := realRegimes()
	if testing.Short() {
		regimes = regimes[:1]
	}
	for _, r := range regimes {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("%s,seed=%d", r.name, seed), func(t *testing.T) { r.play(startReal(t), seed) })
	}
}

func (r realRegime) play(b *brokers, seed uint64) {
	h := history.New("cell")
	ctx, cancel := context.WithTimeout(context.Background(), r.lasts)
	defer cancel()
	playCtx, end := context.WithCancel(context.Background())
	defer end()
	var playing sync.WaitGroup
	var stores []*counted
	for i := range 8 {
		store := &counted{Store: b.open(b.direct(), usual)}
		stores = append(stores, store)
		c := history.Client{ID: i, Attention: 700 * time.Millisecond, Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		playing.Go(func() { h.Play(playCtx, store, c) })
	}
	if r.trouble != nil {
		pause(ctx, time.Second)
		b.must(b.Complete(ctx)) // otherwise a killed broker may have the one copy that counts
		r.trouble(b, ctx, b.Leader(b.tb, b.topic, 0))
	}
	<-ctx.Done()
	wait.Until(b.tb, "enough to prove something: "+r.why, func() bool {
		swaps, refusals, unknowns := tallyOf(stores)
		return swaps >= 20 && refusals >= 10 && unknowns >= r.needs
	})
	end()
	playing.Wait()
	fresh := b.open(b.direct())
	wait.Until(b.tb, "a last read", func() bool {
		_, ok := h.Read(b.context(), fresh, 100)
		return ok
	})
	reads, swaps, refusals, unknowns := h.Tally()
	b.tb.Logf("%d reads, %d swaps, %d refusals, %d open outcomes", reads, swaps, refusals, unknowns)
	h.Check(b.tb, history.Rules{})
}
