package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

// hub gives what one connection hears to the watches of each key.
type hub struct {
	listener *listener

	mu      sync.Mutex
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	tried   chan struct{}      // is closed when the feed has opened a connection, or failed to
	opened  bool               // the feed has opened a connection
	lost    error              // why no notifications come; nil: they come, or tried is not closed
	watches watches.Set
	began   watches.Set // those that hear why no notifications come
}

// watch waits for the first attempt to connect. If the deadline of ctx comes before, as on an
// overloaded server, the attempt goes on, and the watch begins without notifications.
func (h *hub) watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	w := watches.New(key, see)
	stop = func() {
		if w.Stop() {
			h.remove(w)
		}
	}
	select {
	case <-h.add(w):
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			stop()
			return nil, context.Cause(ctx)
		}
	}
	lost, err := h.begin(w)
	if err != nil {
		stop()
		return nil, err
	}
	if lost != nil {
		see(silence(lost))
		if h.hears() { // since a moment ago
			see(look)
		}
	}
	return stop, nil
}

// add starts a feed with the first watch.
func (h *hub) add(w *watches.Watch) (tried <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches.Put(w)
	if h.halt == nil {
		ctx, cancel := context.WithCancel(context.Background())
		h.halt, h.tried, h.opened, h.lost = cancel, make(chan struct{}), false, nil
		go newFeed(h).run(ctx)
	}
	return h.tried
}

// begin returns why no notifications come, or the error of a first attempt to connect that failed.
func (h *hub) begin(w *watches.Watch) (lost, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.tried:
		if !h.opened {
			return nil, h.lost
		}
	default:
		h.lost = driver.ErrConnecting
	}
	h.began.Put(w)
	return h.lost, nil
}

// pushes notes why no notifications come. With nil they come again: all elections read, because
// some may have been missed. The context is that of the feed.
func (h *hub) pushes(ctx context.Context, lost error) {
	h.mu.Lock()
	if ctx.Err() != nil { // another feed may be running
		h.mu.Unlock()
		return
	}
	complete := lost == nil && !h.opened && h.lost == nil // nobody has missed anything
	h.opened, h.lost = h.opened || lost == nil, lost
	select {
	case <-h.tried:
	default:
		close(h.tried)
	}
	h.mu.Unlock()
	switch {
	case complete:
	case lost == nil:
		h.tellAll(look)
	default:
		h.tellAll(silence(lost))
	}
}

// silence is the push that says why no notifications come.
func silence(cause error) driver.Entry {
	return driver.Entry{Lost: fmt.Errorf("pgxstore: no notifications come: %w", cause)}
}

// hears reports whether notifications come.
func (h *hub) hears() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opened && h.lost == nil
}

// tellAll pushes an entry to all elections whose watch has begun.
func (h *hub) tellAll(e driver.Entry) {
	h.mu.Lock()
	all := h.began.All()
	h.mu.Unlock()
	watches.Push(all, e)
}

// remove ends the feed with the last watch.
func (h *hub) remove(w *watches.Watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began.Remove(w)
	if h.watches.Remove(w); h.watches.Empty() && h.halt != nil {
		h.halt()
		h.halt = nil
	}
}

// watched reports whether somebody watches the key.
func (h *hub) watched(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watches.Of(key)) > 0
}

// deliver calls the watches of a key without the lock, so that they may use the store.
func (h *hub) deliver(key string, e driver.Entry) {
	h.mu.Lock()
	all := h.watches.Of(key)
	h.mu.Unlock()
	watches.Push(all, e)
}
