package tenuretest

import (
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
)

// far is how much time is made to pass at once: no lease is longer.
const far = tenure.MaxLease

// stageClock is package time's, with a way to have time pass at once.
type stageClock struct {
	clock.Clock

	mu     sync.Mutex
	read   bool
	awake  time.Duration // ahead of package time
	asleep time.Duration // ahead of that, by the only clock that counts suspended time
	timers map[*timer]bool
}

// timer is one that has not rung.
type timer struct {
	stop func() bool
	ring func()
}

func newClock() *stageClock {
	return &stageClock{Clock: clock.Standard{}, timers: map[*timer]bool{}}
}

// Now reads package time's clock and adds the time that passed at once.
func (c *stageClock) Now() clock.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = true
	r := c.Clock.Now()
	r.Mono += c.awake
	r.Raw += c.awake
	r.Boot += c.awake + c.asleep
	return r
}

// AfterFunc is package time's; time that passes at once rings too.
func (c *stageClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{ring: f}
	c.timers[t] = true
	t.stop = c.Clock.AfterFunc(d, func() {
		if c.take(t) {
			f()
		}
	})
	return func() bool {
		t.stop()
		return c.take(t)
	}
}

// take reports whether the timer has not rung, and forgets it.
func (c *stageClock) take(t *timer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.timers[t]
	delete(c.timers, t)
	return waiting
}

// used reports whether the clock was ever read.
func (c *stageClock) used() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read
}

// leap lets time pass.
func (c *stageClock) leap() { c.pass(&c.awake) }

// suspend lets time pass as it does for a suspended machine: a leader counts it; a follower, which
// could not look, does not.
func (c *stageClock) suspend() { c.pass(&c.asleep) }

// pass rings every timer and waits until all have rung. To be rung early costs an election a look.
func (c *stageClock) pass(by *time.Duration) {
	c.mu.Lock()
	*by += far
	due := c.timers
	c.timers = map[*timer]bool{}
	c.mu.Unlock()
	var all sync.WaitGroup
	for t := range due {
		t.stop()
		all.Go(t.ring)
	}
	all.Wait()
}
