package sqlstore

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// hub gives the changes that one feed finds to the watches of each key.
type hub struct {
	store *Store
	every time.Duration // see WithInterval

	mu      sync.Mutex
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	woken   chan struct{}      // tells that feed of new watches
	watches map[string][]*watch
	fresh   []*watch // have not been told anything
}

// watch is one watch of a key.
type watch struct {
	key     string
	see     func(driver.Entry)
	stopped atomic.Bool
}

// watch starts a feed with the first watch.
func (h *hub) watch(key string, see func(driver.Entry)) (stop func()) {
	w := &watch{key: key, see: see}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches[key] = append(h.watches[key], w)
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
		if !w.stopped.Swap(true) {
			h.remove(w)
		}
	}
}

// remove ends the feed with the last watch.
func (h *hub) remove(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(h.watches[w.key]), func(o *watch) bool { return o == w })
	if len(rest) > 0 {
		h.watches[w.key] = rest
		return
	}
	delete(h.watches, w.key)
	if len(h.watches) == 0 && h.halt != nil {
		h.halt()
		h.halt, h.fresh = nil, nil
	}
}

// takeFresh returns the watches that have not been told anything, once. The context is that of the
// feed: another one may be running.
func (h *hub) takeFresh(ctx context.Context) []*watch {
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
	return slices.Collect(maps.Keys(h.watches))
}

// deliver calls the watches of a key without the lock, so that they may use the store.
func (h *hub) deliver(ctx context.Context, key string, e driver.Entry) {
	h.mu.Lock()
	all := h.watches[key]
	h.mu.Unlock()
	if ctx.Err() == nil {
		for _, w := range all {
			w.push(e)
		}
	}
}

// push gives the watch a value of its own.
func (w *watch) push(e driver.Entry) {
	if !w.stopped.Load() {
		e.Value = bytes.Clone(e.Value)
		w.see(e)
	}
}
