package pgxstore

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
)

// hub gives what one connection hears to the watches of each key.
type hub struct {
	listener *listener
	// held by the caller that opens the connection; a channel, so that waiting for it heeds the
	// context
	turn chan struct{}

	mu      sync.Mutex
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	lost    error              // why no notifications come; nil: they come
	watches map[string][]*watch
}

// watch is one watch of a key.
type watch struct {
	see     func(driver.Entry)
	stopped atomic.Bool
}

func newHub(l *listener) *hub {
	return &hub{listener: l, turn: make(chan struct{}, 1), watches: map[string][]*watch{}}
}

func (h *hub) watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	w := &watch{see: see}
	h.mu.Lock()
	h.watches[key] = append(h.watches[key], w)
	h.mu.Unlock()
	stop = func() {
		if !w.stopped.Swap(true) {
			h.remove(key, w)
		}
	}
	if err := h.start(ctx); err != nil {
		stop()
		return nil, err
	}
	h.mu.Lock()
	lost := h.lost
	h.mu.Unlock()
	if lost != nil {
		see(driver.Entry{Lost: lost})
	}
	return stop, nil
}

// pushes notes why no notifications come. With nil they come again: all elections read, because
// some may have been missed. The context is that of the feed.
func (h *hub) pushes(ctx context.Context, lost error) {
	h.mu.Lock()
	ended := ctx.Err() != nil
	if !ended {
		h.lost = lost
	}
	h.mu.Unlock()
	switch {
	case ended: // another feed may be running
	case lost == nil:
		h.tellAll(look)
	default:
		h.tellAll(driver.Entry{Lost: lost})
	}
}

// tellAll pushes an entry to all elections.
func (h *hub) tellAll(e driver.Entry) {
	for _, key := range h.keys() {
		h.deliver(key, e)
	}
}

// remove ends the feed with the last watch.
func (h *hub) remove(key string, w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(h.watches[key]), func(o *watch) bool { return o == w })
	if len(rest) > 0 {
		h.watches[key] = rest
		return
	}
	delete(h.watches, key)
	if len(h.watches) == 0 && h.halt != nil {
		h.halt()
		h.halt = nil
	}
}

// start makes sure that a feed runs. One caller opens the connection; the others wait for it.
func (h *hub) start(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if h.running() {
		return nil
	}
	n, err := h.listener.open(ctx)
	if err != nil {
		return err
	}
	h.run(n)
	return nil
}

func (h *hub) running() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.halt != nil
}

// run starts a feed, unless the last watch has been stopped since.
func (h *hub) run(n *line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watches) == 0 {
		go n.close()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.halt, h.lost = cancel, nil
	go newFeed(h, n).run(ctx)
}

// keys returns all keys that are watched.
func (h *hub) keys() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.watches))
}

// watched reports whether somebody watches the key.
func (h *hub) watched(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watches[key]) > 0
}

// deliver calls the watches without the lock, so that they may use the store, and gives each a
// value of its own.
func (h *hub) deliver(key string, e driver.Entry) {
	h.mu.Lock()
	all := h.watches[key]
	h.mu.Unlock()
	for _, w := range all {
		if !w.stopped.Load() {
			own := e
			own.Value = bytes.Clone(e.Value)
			w.see(own)
		}
	}
}
