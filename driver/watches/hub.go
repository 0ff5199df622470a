package watches

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// ErrClosed is the error of Hub.Watch after Hub.Close.
var ErrClosed = errors.New("the store is closed")

// Read is a push that makes an election read.
var Read = driver.Entry{Unverified: true}

// Follow opens a feed of the changes of all keys and calls opened. Then it gives the changes to
// Hub.Deliver until the feed is lost, and returns the reason. It closes the feed before it returns.
//
// The context ends with the last watch. It also ends if the feed is not open in time: 10 s, or 2 s
// for the first attempt after a loss. The argument missed says whether changes may be missing since
// the feed was open before: then all elections read. Follow may call opened again if the client
// library replaces a lost feed by itself.
type Follow func(ctx context.Context, opened func(missed bool)) error

// Hub lets all watches of a store share one feed of changes. The feed begins with the first watch
// and ends with the last. When it is lost, the hub opens it again, and pauses between attempts that
// fail or feeds that soon end. If an attempt fails, each watch gets an entry with Lost. When the
// feed is open again, each watch gets an entry that makes its election read.
//
// A Hub must be made by NewHub. It has one goroutine while there are watches. It calls no watch
// under a lock, so watches may use the store.
type Hub struct {
	begin func(*Hub) Follow
	feeds sync.WaitGroup // all that were ever started

	mu      sync.Mutex
	closed  bool
	watches Set
	present *lifetime // nil: there is no watch
}

// lifetime is the time from a first watch to the last one.
type lifetime struct {
	ctx    context.Context
	end    context.CancelFunc
	tried  chan struct{} // closed when the first attempt to open the feed has ended
	opened bool          // the feed has been open
	lost   error         // why no changes come; nil: they come, or tried is not closed
}

// NewHub returns a hub. Begin is called for each first watch, and returns the function that then
// opens the feed, again and again, from one goroutine. So that function may keep the place in the
// feed.
func NewHub(begin func(*Hub) Follow) *Hub { return &Hub{begin: begin} }

// Watch is driver.Watcher.Watch. It waits for the first attempt to open the feed, and returns the
// error of that attempt. If the deadline of ctx comes before, the attempt goes on. The watch then
// begins without pushes and says so by an entry with Lost.
//
// Watch returns the cause if ctx is canceled or has ended before, and ErrClosed after Close.
func (h *Hub) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var begun atomic.Bool
	w := New(key, func(e driver.Entry) {
		if e.Lost == nil || begun.Load() { // before that, Watch returns the error
			see(e)
		}
	})
	l, err := h.add(w)
	if err != nil {
		return nil, err
	}
	stop = func() { h.remove(w) }
	select {
	case <-l.tried:
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			stop()
			return nil, context.Cause(ctx)
		}
	}
	lost, err := h.enter(l, &begun)
	if err != nil {
		stop()
		return nil, err
	}
	if lost != nil {
		w.Push(silence(lost))
		if h.silent(l) == nil { // since a moment ago
			w.Push(Read)
		}
	}
	return stop, nil
}

// add starts a feed with the first watch.
func (h *Hub) add(w *Watch) (*lifetime, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	h.watches.Put(w)
	if h.present == nil {
		l := &lifetime{tried: make(chan struct{})}
		l.ctx, l.end = context.WithCancel(context.Background())
		h.present = l
		h.feeds.Go(func() { h.run(l) })
	}
	return h.present, nil
}

// enter begins a watch, and returns why no changes come. It returns an error if the first attempt
// to open the feed has failed.
func (h *Hub) enter(l *lifetime, begun *atomic.Bool) (lost, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	select {
	case <-l.tried:
		if !l.opened {
			return nil, l.lost
		}
	default:
		l.lost = driver.ErrConnecting
	}
	begun.Store(true)
	return l.lost, nil
}

// silent returns why no changes come; nil: they come.
func (h *Hub) silent(l *lifetime) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return l.lost
}

// remove ends the feed with the last watch.
func (h *Hub) remove(w *Watch) {
	if !w.Stop() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches.Remove(w); h.watches.Empty() && h.present != nil {
		h.present.end()
		h.present = nil
	}
}

// Close stops all watches, ends the feed, and waits until Follow has returned. It may be called
// more than once, but not from a function that was given to Watch.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	h.watches.StopAll()
	if h.present != nil {
		h.present.end()
		h.present.attempted()
		h.present = nil
	}
	h.mu.Unlock()
	h.feeds.Wait()
}

// Deliver pushes an entry to the watches of a key.
func (h *Hub) Deliver(key string, e driver.Entry) {
	h.mu.Lock()
	all := h.watches.Of(key)
	h.mu.Unlock()
	Push(all, e)
}

// DeliverAll pushes an entry to the watches of all keys.
func (h *Hub) DeliverAll(e driver.Entry) {
	h.mu.Lock()
	all := h.watches.All()
	h.mu.Unlock()
	Push(all, e)
}

// Keys returns the keys that are watched, in no order.
func (h *Hub) Keys() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watches.Keys()
}

// Watched reports whether a key is watched.
func (h *Hub) Watched(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watches.Of(key)) > 0
}

const (
	// openWithin bounds an attempt to open a feed, since a server that is overloaded needs time.
	openWithin = 10 * time.Second
	// reopenWithin bounds the first attempt after a loss, so that elections soon know of it.
	reopenWithin = 2 * time.Second
	// The pause grows from the first to the last, after each attempt that failed and each feed that
	// ended before the last pause. It counts from the beginning of that attempt.
	firstPause, lastPause = 50 * time.Millisecond, 5 * time.Second
	// longPause is a reason to poll.
	longPause = time.Second
)

// run keeps a feed open.
func (h *Hub) run(l *lifetime) {
	follow := h.begin(h)
	pause, within := time.Duration(0), openWithin
	for {
		began := time.Now()
		opened, err := h.follow(l, follow, within)
		lasted := time.Since(began)
		if opened {
			within = reopenWithin
		} else {
			within = openWithin
		}
		rest := time.Duration(0)
		if opened && lasted > lastPause {
			pause = 0
		} else {
			pause = min(max(2*pause, firstPause), lastPause)
			rest = pause/2 + rand.N(pause) - lasted
		}
		if !opened || rest > longPause {
			h.lost(l, err)
		}
		select {
		case <-time.After(rest):
		case <-l.ctx.Done():
		}
		if l.ctx.Err() != nil {
			return
		}
	}
}

// follow opens the feed once, and reports whether it was open.
func (h *Hub) follow(l *lifetime, follow Follow, within time.Duration) (opened bool, err error) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	late := time.AfterFunc(within, cancel)
	defer late.Stop()
	var open atomic.Bool
	err = follow(ctx, func(missed bool) {
		if late.Stop() {
			open.Store(true)
		}
		if open.Load() { // else it is too late, and ends
			h.opened(l, missed)
		}
	})
	switch {
	case open.Load():
		err = fmt.Errorf("the feed of changes ends too often: %w", err) // else it is not told
	case errors.Is(err, context.Canceled): // by this hub
		err = fmt.Errorf("%w within %v: %s", driver.ErrNoAnswer, within, err.Error())
	}
	return open.Load(), err
}

// opened notes that changes come. Then elections read if they may have missed some.
func (h *Hub) opened(l *lifetime, missed bool) {
	var all []*Watch
	h.mu.Lock()
	if l.ctx.Err() == nil {
		if l.lost != nil || missed && l.opened {
			all = h.watches.All()
		}
		l.opened, l.lost = true, nil
		l.attempted()
	}
	h.mu.Unlock()
	Push(all, Read)
}

// lost notes why no changes come, and tells all watches.
func (h *Hub) lost(l *lifetime, cause error) {
	var all []*Watch
	h.mu.Lock()
	if l.ctx.Err() == nil {
		l.lost = cause
		all = h.watches.All()
		l.attempted()
	}
	h.mu.Unlock()
	Push(all, silence(cause))
}

// silence is the push that says why no changes come.
func silence(cause error) driver.Entry {
	return driver.Entry{Lost: fmt.Errorf("no changes are pushed: %w", cause)}
}

// attempted lets the watches begin that wait for the first attempt. It is called under the lock.
func (l *lifetime) attempted() {
	select {
	case <-l.tried:
	default:
		close(l.tried)
	}
}
