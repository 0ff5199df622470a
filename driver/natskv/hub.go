package natskv

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
)

var errClosed = errors.New("the store is closed")

// hub hands what one feed brings to the watches of each key.
type hub struct {
	from  source
	calls *calls
	turn  chan struct{} // held by whoever starts the feed; a channel, so that waiting for it heeds the context

	mu      sync.Mutex
	closed  bool
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	watches map[string][]*watch
	feeds   sync.WaitGroup // all that were ever started
}

type watch struct {
	see     func(driver.Entry)
	stopped atomic.Bool
}

func newHub(from source, under *calls) *hub {
	return &hub{from: from, calls: under, turn: make(chan struct{}, 1), watches: map[string][]*watch{}}
}

func (h *hub) watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	w := &watch{see: see}
	stop = func() { h.remove(key, w) }
	h.add(key, w)
	if err := h.start(ctx); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// add replaces the slice of the key, since deliver may be going over the old one.
func (h *hub) add(key string, w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches[key] = append(slices.Clone(h.watches[key]), w)
}

// remove stops the feed with the last watch.
func (h *hub) remove(key string, w *watch) {
	if w.stopped.Swap(true) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(h.watches[key]), func(other *watch) bool { return other == w })
	if len(rest) > 0 {
		h.watches[key] = rest
		return
	}
	delete(h.watches, key)
	if len(h.watches) == 0 {
		h.stop()
	}
}

// stop is called under the lock.
func (h *hub) stop() {
	if h.halt != nil {
		h.halt()
		h.halt = nil
	}
}

// start makes sure that a feed is running. One caller sets it up, the others wait for that.
func (h *hub) start(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if running, err := h.running(); running || err != nil {
		return err
	}
	f, err := openFeed(ctx, h.from, h.calls, h.deliver)
	if err != nil {
		return err
	}
	return h.adopt(f)
}

func (h *hub) running() (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false, errClosed
	}
	return h.halt != nil, nil
}

// adopt runs the feed, unless the hub was closed while it was set up.
func (h *hub) adopt(f *feed) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		f.link.stop()
		return errClosed
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.halt = cancel
	h.feeds.Go(func() { f.run(ctx) })
	return nil
}

// deliver calls the watches without the lock, so that they may use the store, and gives each a value of its own.
func (h *hub) deliver(key string, e driver.Entry) {
	h.mu.Lock()
	watches := h.watches[key]
	h.mu.Unlock()
	for _, w := range watches {
		if !w.stopped.Load() {
			own := e
			own.Value = bytes.Clone(e.Value)
			w.see(own)
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for _, watches := range h.watches {
		for _, w := range watches {
			w.stopped.Store(true)
		}
	}
	clear(h.watches)
	h.stop()
	h.mu.Unlock()
	h.feeds.Wait()
}
