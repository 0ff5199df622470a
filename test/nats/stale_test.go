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
// Without this, TestRegister/nats3 in package stores would prove nothing.
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
	h := history.New("cell")
	ctx, cancel := history.Lasting(3*time.Second, func() bool { return true })
	defer cancel()
	var playing sync.WaitGroup
	for n := range 2 * natsd.Members { // two over each server
		kv, err := a.connect(n).KeyValue(a.context(), a.bucket)
		a.must(err)
		store := past{a.open(n), kv}
		c := history.Client{ID: n, Attention: 500 * time.Millisecond, Rand: rand.New(rand.NewPCG(rand.Uint64(), 0))}
		playing.Go(func() { h.Play(ctx, store, c) })
	}
	time.Sleep(time.Second) // all copies are alike at first
	a.Part(a.Others(a.leader())[0])
	playing.Wait()
	a.must(a.Mend(a.context()))
	last := a.open(0)
	a.eventually("a last read", func(ctx context.Context) error {
		if _, ok := h.Read(ctx, last, 100); !ok {
			return fmt.Errorf("it failed")
		}
		return nil
	})
	return len(h.Faults(history.Rules{Hasty: true})) > 0
}
