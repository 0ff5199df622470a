package sqlstore

import (
	"context"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

// hub gives the changes that one feed finds to the watches of each key.
type hub struct {
	store *Store
	every time.Duration // see WithInterval

	mu      sync.Mutex
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	woken   chan struct{}      // tells that feed of new watches
	watches watches.Set
	fresh   []*watches.Watch // have not been told anything
}

// watch starts a feed with the first watch.
func (h *hub) watch(key string, see func(driver.Entry)) (stop func()) {
	w := watches.New(key, see)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches.Put(w)
	h.fresh = append(h.fresh, w)
	if h.halt == nil {
		ctx, cancel := context.WithCancel(context.Background())
		h.halt, h.woken = cancel, make(chan struct{}, 1)
		go newFeed(h).run(ctx, h.woken)
	}
	select {
	case h.woken <- struct{}{}:
	default:
	}
	return func() {
		if w.Stop() {
			h.remove(w)
		}
	}
}

// remove ends the feed with the last watch.
func (h *hub) remove(w *watches.Watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches.Remove(w); h.watches.Empty() && h.halt != nil {
		h.halt()
		h.halt, h.fresh = nil, nil
	}
}

// takeFresh returns the watches that have not been told anything, once. The context is that of the
// feed: another one may be running.
func (h *hub) takeFresh(ctx context.Context) []*watches.Watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	fresh := h.fresh
	h.fresh = nil
	return fresh
}

// keys returns all keys that are watched.
func (h *hub) keys() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watches.Keys()
}

// deliver calls the watches of a key without the lock, so that they may use the store.
func (h *hub) deliver(ctx context.Context, key string, e driver.Entry) {
	h.mu.Lock()
	all := h.watches.Of(key)
	h.mu.Unlock()
	if ctx.Err() == nil {
		watches.Push(all, e)
	}
}
