package tenuretest

import (
	"sync"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
)

// longestLease is how far the clock is set forward.
const longestLease = driver.MaxLease

// stageClock follows package time, and can be set forward.
type stageClock struct {
	clock.Clock

	mu            sync.Mutex
	everRead      bool
	skipped       time.Duration // how far the clock is ahead of package time
	skippedAsleep time.Duration // how far Boot is ahead of that
	timers        map[*pendingTimer]bool
}

// pendingTimer is a timer that has not fired.
type pendingTimer struct {
	stop func() bool
	fire func()
}

func newClock() *stageClock {
	return &stageClock{Clock: clock.Standard{}, timers: map[*pendingTimer]bool{}}
}

// Now reads package time's clock and adds the time by which this clock was set forward.
func (c *stageClock) Now() clock.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.everRead = true
	r := c.Clock.Now()
	r.Mono += c.skipped
	r.Raw += c.skipped
	r.Boot += c.skipped + c.skippedAsleep
	return r
}

// AfterFunc calls f after d of package time, or when the clock is set forward.
func (c *stageClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &pendingTimer{fire: f}
	c.timers[t] = true
	t.stop = c.Clock.AfterFunc(d, func() {
		if c.removeTimer(t) {
			f()
		}
	})
	return func() bool {
		t.stop()
		return c.removeTimer(t)
	}
}

// removeTimer removes the timer, and reports whether it was still pending.
func (c *stageClock) removeTimer(t *pendingTimer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	pending := c.timers[t]
	delete(c.timers, t)
	return pending
}

// wasRead reports whether the clock was ever read.
func (c *stageClock) wasRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.everRead
}

// skipLongestLease sets the clock forward.
func (c *stageClock) skipLongestLease() { c.advance(&c.skipped, longestLease) }

// suspend sets the clock forward as for a suspended machine: a leader counts that time, and a
// follower does not.
func (c *stageClock) suspend() { c.advance(&c.skippedAsleep, longestLease) }

// fireTimers fires every timer without setting the clock forward. A timer that fires early does no
// harm to an election.
func (c *stageClock) fireTimers() { c.advance(&c.skipped, 0) }

// advance adds d to one of the offsets, fires every timer and waits for them.
func (c *stageClock) advance(offset *time.Duration, d time.Duration) {
	c.mu.Lock()
	*offset += d
	due := c.timers
	c.timers = map[*pendingTimer]bool{}
	c.mu.Unlock()
	var all sync.WaitGroup
	for t := range due {
		t.stop()
		all.Go(t.fire)
	}
	all.Wait()
}
