//go:build unix

package guarded

import (
	"sync"
	"syscall"
	"time"
)

// Request is the request to end this process, by signals. Its zero value is ready for use, and its
// methods may be called concurrently.
type Request struct {
	mu     sync.Mutex
	signal syscall.Signal // the first one, or 0
	came   time.Time      // when it came
	killed bool
	// done and atOnce are nil until they are asked for.
	done, atOnce chan struct{}
}

// oneSignal is the time in which a second signal is taken for the first one: timeout(1) signals
// this process, and then its process group.
const oneSignal = 300 * time.Millisecond

// Hear notes SIGTERM or another signal that asks this process to end, and reports whether it is the
// first one. A later one asks to kill the commands at once.
func (r *Request) Hear(s syscall.Signal) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.signal == 0:
		r.signal, r.came = s, time.Now()
		r.close(&r.done)
		return true
	case r.signal == s && time.Since(r.came) < oneSignal, r.killed:
	default:
		r.killed = true
		r.close(&r.atOnce)
	}
	return false
}

// Signal returns the signal that asked this process to end, or 0.
func (r *Request) Signal() syscall.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.signal
}

// Done returns a channel that is closed at the first signal.
func (r *Request) Done() <-chan struct{} { return r.get(&r.done) }

// AtOnce returns a channel that is closed when commands are to be killed at once.
func (r *Request) AtOnce() <-chan struct{} { return r.get(&r.atOnce) }

func (r *Request) get(c *chan struct{}) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.make(c)
	return *c
}

// make and close are called with the lock held.
func (r *Request) make(c *chan struct{}) {
	if *c == nil {
		*c = make(chan struct{})
	}
}

func (r *Request) close(c *chan struct{}) {
	r.make(c)
	close(*c)
}
