package tenuretest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// candidate is a candidate of the test, with its own connection to the store and its own clock.
type candidate struct {
	store   faults.Store
	watches *watchCounter
	clock   *stageClock
}

func newCandidate(store *memory.Store, election string) *candidate {
	w := &watchCounter{Store: store, election: election}
	return &candidate{store: faults.New(w, 0, faults.Plan{}), watches: w, clock: newClock()}
}

// follows reports whether the candidate watches the election, and so would claim it after a
// hand-over.
func (c *candidate) follows() bool { return c.watches.count.Load() > 0 }

// suspend makes the candidate behave as if its process was suspended for longer than any lease.
// Until it wakes up it reaches no store; its calls fail at once, so that none still hangs
// afterwards.
func (c *candidate) suspend() (wake func()) {
	c.store.SetPlan(faults.Plan{Chances: faults.Chances{faults.Fail: 1}})
	c.clock.suspend()
	return func() {
		c.clock.suspend() // fires timers set by a step that had read the clock before
		c.store.SetPlan(faults.Plan{})
	}
}

// watchCounter is the store, and counts the watches of the election.
type watchCounter struct {
	*memory.Store
	election string
	count    atomic.Int64
}

// Watch calls the store and counts the watch until it is stopped.
func (w *watchCounter) Watch(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
	stop, err := w.Store.Watch(ctx, key, see)
	if err != nil || key != w.election {
		return stop, err
	}
	w.count.Add(1)
	return sync.OnceFunc(func() {
		w.count.Add(-1)
		stop()
	}), nil
}
