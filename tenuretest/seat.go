package tenuretest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// seat is a candidate's place on the stage: a line to the store and a clock, both of its own.
type seat struct {
	line  faults.Store
	ear   *ear
	clock *stageClock
}

func newSeat(store *memory.Store, election string) *seat {
	e := &ear{Store: store, election: election}
	return &seat{line: faults.New(e, 0, faults.Plan{}), ear: e, clock: newClock()}
}

// follows reports whether the candidate hears of the election, and so would claim it when asked to.
func (s *seat) follows() bool { return s.ear.watches.Load() > 0 }

// suspend makes the candidate behave as if its process was suspended for longer than any lease.
// Until it wakes up it reaches no store; its calls fail at once, so that none still hangs
// afterwards.
func (s *seat) suspend() (wake func()) {
	s.line.SetPlan(faults.Plan{Chances: faults.Chances{faults.Fail: 1}})
	s.clock.suspend()
	return func() {
		s.clock.suspend() // rings timers that were set by a step that had read the time before
		s.line.SetPlan(faults.Plan{})
	}
}

// ear is the store with a count of the listeners.
type ear struct {
	*memory.Store
	election string
	watches  atomic.Int64
}

// Watch is the store's.
func (e *ear) Watch(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
	stop, err := e.Store.Watch(ctx, key, see)
	if err != nil || key != e.election {
		return stop, err
	}
	e.watches.Add(1)
	return sync.OnceFunc(func() {
		e.watches.Add(-1)
		stop()
	}), nil
}
