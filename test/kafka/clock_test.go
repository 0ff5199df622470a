package kafka

import (
	"sync"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// handClock moves only when it is put forward. So a stall of the machine costs no member a lease.
type handClock struct {
	mu     sync.Mutex
	now    time.Duration
	timers map[*handTimer]bool
}

type handTimer struct {
	at   time.Duration
	ring func()
}

func newHandClock() *handClock {
	return &handClock{now: time.Hour, timers: map[*handTimer]bool{}}
}

// Now implements clock.Clock.
func (h *handClock) Now() clock.Reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := clock.Reading{Wall: time.Unix(0, 0).Add(h.now)}
	r.Mono, r.Raw, r.Boot = h.now, h.now, h.now
	return r
}

// AfterFunc implements clock.Clock.
func (h *handClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &handTimer{h.now + d, f}
	h.timers[t] = true
	h.ring()
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		waits := h.timers[t]
		delete(h.timers, t)
		return waits
	}
}

// Drift implements clock.Clock.
func (*handClock) Drift() float64 { return 0.01 }

// forward lets time pass.
func (h *handClock) forward(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += d
	h.ring()
}

// ring must be called with the lock held.
func (h *handClock) ring() {
	for t := range h.timers {
		if t.at <= h.now {
			delete(h.timers, t)
			go t.ring()
		}
	}
}

// during lets time pass until the call has returned.
func (h *handClock) during(call func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
			h.forward(time.Millisecond)
		}
	}
}
