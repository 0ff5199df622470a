package drivertest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/kit"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// trial is one run of one case.
type trial struct {
	kit.Reporter
	Harness
	time kit.Timing
}

func newTrial(r kit.Reporter, h Harness, time kit.Timing) *trial {
	return &trial{Reporter: r, Harness: h.withDefaults(), time: time}
}

// timeLeft returns how long the kit may still wait for an expected event.
func (t *trial) timeLeft() time.Duration {
	if t.Patience > 0 {
		return t.Patience
	}
	return t.time.Left()
}

// key returns a random key that was never used.
func (t *trial) key(name string) string { return kit.Key(name) }

func (t *trial) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), t.timeLeft())
}

// writer returns the client of the i-th writer: Store or Peer in turn, so that a lock within one
// client does not hide a race.
func (t *trial) writer(i int) driver.Store {
	if t.Peer != nil && i%2 == 1 {
		return t.Peer
	}
	return t.Store
}

func (t *trial) read(key string) driver.Entry {
	t.Helper()
	ctx, cancel := t.context()
	defer cancel()
	e, err := t.Store.Read(ctx, key)
	if err != nil {
		t.Fatalf("read of %q: %v", key, err)
	}
	return e
}

func (t *trial) swap(key string, prev driver.Version, value []byte) (driver.Version, error) {
	ctx, cancel := t.context()
	defer cancel()
	return t.Store.CompareAndSwap(ctx, key, prev, value)
}

// requireSwap swaps, and requires that the swap is applied.
func (t *trial) requireSwap(key string, prev driver.Version, value []byte) driver.Version {
	t.Helper()
	v, err := t.swap(key, prev, value)
	switch {
	case err != nil:
		t.Fatalf("swap of %q from its version %q: %v", key, prev, err)
	case v == "":
		t.Fatalf("swap of %q from its version %q: applied without a version", key, prev)
	}
	return v
}

// requireConflict swaps, and requires a conflict.
func (t *trial) requireConflict(key string, prev driver.Version, value []byte) {
	t.Helper()
	v, err := t.swap(key, prev, value)
	switch {
	case err == nil:
		t.Errorf("swap of %q from version %q, which it does not have: applied as version %q", key, prev, v)
	case !errors.Is(err, driver.ErrConflict):
		t.Errorf("swap of %q from version %q, which it does not have: %v; want a conflict", key, prev, err)
	}
}

// create writes the first value of a fresh key.
func (t *trial) create(key string, value []byte) driver.Version {
	t.Helper()
	return t.requireSwap(key, t.read(key).Version, value)
}

// awaitState reads until the entry has reached a state, and returns it.
func (t *trial) awaitState(key, state string, reached func(driver.Entry) bool) driver.Entry {
	t.Helper()
	var e driver.Entry
	if !t.eventually(func() bool { e = t.read(key); return reached(e) }) {
		t.Fatalf("%q does not become %s: it has version %q and %d bytes", key, state, e.Version, len(e.Value))
	}
	return e
}

// requireValue waits until the cell has this version, and requires that it holds the value.
func (t *trial) requireValue(key string, v driver.Version, value []byte) driver.Entry {
	t.Helper()
	e := t.awaitState(key, "at version "+string(v), func(e driver.Entry) bool { return e.Version == v })
	if !bytes.Equal(e.Value, value) {
		t.Errorf("%q holds %s in version %q; want %s", key, kit.Brief(e.Value), v, kit.Brief(value))
	}
	return e
}

func (t *trial) eventually(ok func() bool) bool { return wait.Within(t.timeLeft(), ok) }

// within reports whether do returns within d. If not, do goes on in its goroutine. Time is counted
// in ticks. A ticker drops ticks while the machine stalls, so a stall counts as one tick.
func within(d time.Duration, do func()) bool {
	const tick = 20 * time.Millisecond
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for range d / tick {
		select {
		case <-done:
			return true
		case <-ticks.C:
		}
	}
	return false
}

// together runs do in n goroutines that start at once, and waits for them.
func together(n int, do func(i int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
}
