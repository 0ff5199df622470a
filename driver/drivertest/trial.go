package drivertest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/patience"
)

// reporter is what a case needs of testing.TB. The kit's own tests have another one, which collects the failures of
// broken stores.
type reporter interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// trial is one run of one case.
type trial struct {
	reporter
	Harness
	time timing
}

// timing says how a trial relates to time.
type timing struct {
	// left returns how long a call, a push or a fresh read may still take.
	left func() time.Duration
	// stalls says that the machine may stop for longer than a lease. In virtual time it does not.
	stalls bool
}

// realTime bounds waits by the test's own limit.
func realTime(t testing.TB) timing {
	return timing{left: func() time.Duration { return patience.Left(t) }, stalls: true}
}

// virtualTime has a bound of its own, which nothing but a fault can reach.
func virtualTime() timing {
	return timing{left: func() time.Duration { return virtualPatience }}
}

func newTrial(r reporter, h Harness, time timing) *trial {
	return &trial{reporter: r, Harness: h.withDefaults(), time: time}
}

// left returns how long anything may still take that should happen.
func (t *trial) left() time.Duration {
	if t.Patience > 0 {
		return t.Patience
	}
	return t.time.left()
}

// key draws a key that was never used. It is of letters, digits and a hyphen, which every store can hold.
func (t *trial) key(name string) string {
	return name + "-" + strings.ToLower(rand.Text()[:16])
}

func (t *trial) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), t.left())
}

// writer returns the i-th of the clients in turn, so that a lock within one does not hide a race.
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

// apply is a swap that must be applied.
func (t *trial) apply(key string, prev driver.Version, value []byte) driver.Version {
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

// refuse is a swap that must conflict.
func (t *trial) refuse(key string, prev driver.Version, value []byte) {
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
	return t.apply(key, t.read(key).Version, value)
}

// settle reads until the cell is in a state, and returns it.
func (t *trial) settle(key, state string, reached func(driver.Entry) bool) driver.Entry {
	t.Helper()
	var e driver.Entry
	if !t.eventually(func() bool { e = t.read(key); return reached(e) }) {
		t.Fatalf("%q does not become %s: it has version %q and %d bytes", key, state, e.Version, len(e.Value))
	}
	return e
}

// holds requires that the cell comes to hold the value in this version.
func (t *trial) holds(key string, v driver.Version, value []byte) driver.Entry {
	t.Helper()
	e := t.settle(key, "at version "+string(v), func(e driver.Entry) bool { return e.Version == v })
	if !bytes.Equal(e.Value, value) {
		t.Errorf("%q holds %s in version %q; want %s", key, brief(e.Value), v, brief(value))
	}
	return e
}

// eventually asks again and again, more and more slowly: there is no event to wait for where a store cannot push.
func (t *trial) eventually(ok func() bool) bool {
	end := time.Now().Add(t.left())
	for pause := time.Millisecond; !ok(); pause = min(2*pause, 100*time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// within reports whether do returns within d of a machine that runs. If not it is left behind. Time
// is counted in ticks, which a ticker drops while the machine stalls: a stall counts as one of them.
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
