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
	"context"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/kit"
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

const (
	defaultRounds  = 25
	defaultWatches = 1000
)

func (h Harness) withDefaults() Harness {
	if h.Rounds == 0 {
		h.Rounds = defaultRounds
	}
	if h.Watches == 0 {
		h.Watches = defaultWatches
	}
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
