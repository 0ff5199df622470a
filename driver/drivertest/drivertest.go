// Package drivertest is the conformance kit: the contract of package driver, as tests that every
// adapter runs.
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, func(t testing.TB) drivertest.Harness {
//			return drivertest.Harness{Store: open(t)}
//		})
//	}
//
// Package electiontest continues with whole elections over the store. Benchmark measures single
// calls.
//
// On failure, each case prints why it matters. A case that a store or a harness cannot support is
// skipped with the reason. Reads may be stale by contract, so the kit reads until it sees the
// acknowledged state. It waits for that, and for everything else that should happen, until shortly
// before the time limit of the test binary. It writes to about a hundred fresh keys with the
// default Rounds, and watches Harness.Watches other keys. It leaves its cells behind.
package drivertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/kit"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Harness is a store under test with the actions that a case may need. Only Store is required;
// cases that need a missing field are skipped.
type Harness struct {
	Store driver.Store
	// Peer is a second client of the same cells, as another process has one.
	Peer driver.Store
	// Denied is a client of the same cells that has no rights to them.
	Denied driver.Store

	// Delete removes a cell as an operator would, with a delete marker if the store has delete
	// markers.
	Delete func(ctx context.Context, key string) error
	// Purge removes a cell and any marker.
	Purge func(ctx context.Context, key string) error
	// Recreate deletes the store with all of its cells, and recreates it empty, as an operator
	// would.
	Recreate func(ctx context.Context) error
	// Cut makes the network swallow all traffic between Store and its servers, silently, until heal
	// is called.
	Cut func() (heal func())

	// Patience limits how long a call, a push or a fresh read may take while nothing is wrong.
	// Zero: the time limit of the test binary less a reserve for reports, so that a slow machine
	// fails no case.
	Patience time.Duration
	// Lease is the lease of the elections in package electiontest, if it is longer than two seconds
	// and the store's minimum; otherwise the longer of these is. A machine that stalls for longer
	// costs time and does not fail a case.
	Lease time.Duration
	// Rounds is how often a case repeats its steps, if it does; each round of a race has 16
	// writers. Zero: 25.
	Rounds int
	// Watches is how many watches the store must serve with a fixed number of goroutines. Zero:
	// 1,000.
	Watches int
	// FloorTick is the resolution of a Floor that is a clock. The kit waits for it before it
	// expects a higher floor. Zero: Floor is a counter.
	FloorTick time.Duration
	// ContentVersions says that a version follows from the bytes, as many an ETag does, so that
	// equal bytes have equal versions. Elections never write the same bytes twice; the case that
	// does is skipped.
	ContentVersions bool
}

func (h Harness) withDefaults() Harness {
	h.Rounds, h.Watches = cmp.Or(h.Rounds, 25), cmp.Or(h.Watches, 1000)
	return h
}

// Run runs every case as a subtest, one after another, each with a harness of its own from open.
// All harnesses may have the same store. Open registers its clean-up with t.Cleanup.
func Run(t *testing.T, open func(t testing.TB) Harness) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { kit.Try(t, c.why, c.on(open)) })
	}
}

// RunInBubbles is Run in virtual time: each case has a bubble of testing/synctest to itself, so a
// slow machine exceeds no time limit of the kit. Open is called in the bubble. The store it returns
// and the network to it must work there.
func RunInBubbles(t *testing.T, open func(t testing.TB) Harness) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { kit.TryInBubble(t, c.why, c.on(open)) })
	}
}

// testCase is one promise of the contract.
type testCase struct {
	name string
	why  string
	run  func(*trial)
}

// on runs the case on the harness that open returns.
func (c testCase) on(open func(t testing.TB) Harness) func(testing.TB, kit.Timing) {
	return func(t testing.TB, time kit.Timing) { c.run(newTrial(t, open(t), time)) }
}

// cases returns all cases, in the order in which a new adapter should get them right.
func cases() []testCase {
	return slices.Concat(
		absentCases(),
		swapCases(),
		valueCases(),
		keyCases(),
		raceCases(),
		removeCases(),
		recreateCases(),
		floorCases(),
		contextCases(),
		cutCases(),
		abilityCases(),
		watchCases(),
		watchStopCases(),
	)
}

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
	e, err := t.tryRead(key)
	if err != nil {
		t.Fatalf("read of %q: %v", key, err)
	}
	return e
}

// tryRead is read beside a write whose outcome is open: the store may refuse what it sees then.
func (t *trial) tryRead(key string) (driver.Entry, error) {
	ctx, cancel := t.context()
	defer cancel()
	return t.Store.Read(ctx, key)
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
	var err error
	if !t.eventually(func() bool { e, err = t.tryRead(key); return err == nil && reached(e) }) {
		t.Fatalf("%q does not become %s: it has version %q and %d bytes; error: %v", key, state, e.Version, len(e.Value), err)
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

// recordSize is about the size of an election's record in bytes.
const recordSize = 320

// Benchmark measures the store, one call at a time, with values of the size of an election's
// record. Each part is a sub-benchmark with a harness of its own from open.
func Benchmark(b *testing.B, open func(t testing.TB) Harness) {
	for _, part := range []struct {
		name string
		run  func(*testing.B, Harness)
	}{
		{"Read", benchmarkRead},
		{"CompareAndSwap", benchmarkSwap},
	} {
		b.Run(part.name, func(b *testing.B) {
			h := open(b)
			b.ReportAllocs()
			part.run(b, h)
		})
	}
}

func benchmarkRead(b *testing.B, h Harness) {
	t := newTrial(b, h, kit.RealTime(b))
	key := t.key("bench")
	v := t.create(key, bytes.Repeat([]byte("r"), recordSize))
	t.awaitState(key, "written", func(e driver.Entry) bool { return e.Version == v })
	for b.Loop() {
		if _, err := h.Store.Read(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkSwap(b *testing.B, h Harness) {
	t := newTrial(b, h, kit.RealTime(b))
	key, value := t.key("bench"), bytes.Repeat([]byte("r"), recordSize)
	v := t.create(key, value)
	for n := uint64(0); b.Loop(); n++ {
		for i := range 8 { // no two values alike
			value[i] = byte(n >> (8 * i))
		}
		next, err := h.Store.CompareAndSwap(b.Context(), key, v, value)
		if err != nil {
			b.Fatal(err)
		}
		v = next
	}
}
