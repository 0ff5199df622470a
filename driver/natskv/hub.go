package natskv

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
)

var errClosed = errors.New("the store is closed")

// hub gives the entries of one feed to the watches of each key.
type hub struct {
	from  source
	calls *abandon.Calls
	// held by the caller that starts the feed; a channel, so that waiting for it heeds the context
	turn chan struct{}

	mu      sync.Mutex
	closed  bool
	lost    error              // why no messages come; nil: they come
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	watches map[string]*watch  // the first of each key
	feeds   sync.WaitGroup     // all that were ever started
}

// watch is one watch of a key. There may be ten thousand, of as many keys.
type watch struct {
	hub     *hub
	key     string
	see     func(driver.Entry)
	next    *watch // of the same key; under the lock
	stopped atomic.Bool
}

func newHub(from source, under *abandon.Calls) *hub {
	return &hub{from: from, calls: under, turn: make(chan struct{}, 1), watches: map[string]*watch{}}
}

func (h *hub) watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	w := &watch{hub: h, key: key, see: see}
	h.add(w)
	if err := h.start(ctx); err != nil {
		w.stop()
		return nil, err
	}
	h.mu.Lock()
	lost := h.lost
	h.mu.Unlock()
	if lost != nil {
		see(driver.Entry{Lost: lost})
		if h.hears() { // since a moment ago
			see(driver.Entry{Unverified: true})
		}
	}
	return w.stop, nil
}

// pushes notes why no messages come, or nil if they come, and tells all watches. The context is
// that of the feed.
func (h *hub) pushes(ctx context.Context, lost error) {
	h.mu.Lock()
	was, ended := h.lost, ctx.Err() != nil
	if !ended {
		h.lost = lost
	}
	h.mu.Unlock()
	switch {
	case ended: // another feed may be running
	case lost != nil: // each time: a message that was under way may have come since
		h.tellAll(driver.Entry{Lost: lost})
	case was != nil:
		h.tellAll(driver.Entry{Unverified: true}) // makes them read
	}
}

// hears reports whether messages come.
func (h *hub) hears() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost == nil
}

func (h *hub) add(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.watches[w.key]
	at := &first
	for *at != nil {
		at = &(*at).next
	}
	*at = w
	h.watches[w.key] = first
}

func (w *watch) stop() {
	if !w.stopped.Swap(true) {
		w.hub.remove(w)
	}
}

// remove stops the feed with the last watch.
func (h *hub) remove(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.watches[w.key]
	at := &first
	for *at != nil && *at != w {
		at = &(*at).next
	}
	*at = w.next
	if first != nil {
		h.watches[w.key] = first
		return
	}
	delete(h.watches, w.key)
	if len(h.watches) == 0 {
		h.stop()
	}
}

// of returns the watches of a key.
func (h *hub) of(key string) []*watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*watch
	for w := h.watches[key]; w != nil; w = w.next {
		all = append(all, w)
	}
	return all
}

// stop is called under the lock.
func (h *hub) stop() {
	if h.halt != nil {
		h.halt()
		h.halt = nil
	}
}

// start makes sure that a feed is running. One caller sets it up; the others wait for that.
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
	f, err := openFeed(ctx, h)
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
	h.halt, h.lost = cancel, nil
	h.feeds.Go(func() { f.run(ctx) })
	return nil
}

// deliver calls the watches without the lock, so that they may use the store, and gives each a
// value of its own.
func (h *hub) deliver(key string, e driver.Entry) {
	for _, w := range h.of(key) {
		if !w.stopped.Load() {
			own := e
			own.Value = bytes.Clone(e.Value)
			w.see(own)
		}
	}
}

// recreated notifies all watches that the bucket was recreated or put back: their state may be
// void, and perhaps no message will ever show that.
//
// The floor is that of the last sequence. The beginning of the life would be too high where
// sequences begin at another clock's time, and a term above its own sequence could recur after a
// purge.
func (h *hub) recreated(l *link) {
	h.tellAll(driver.Entry{Era: uint64(l.life), Floor: l.floor})
}

// tellAll pushes an entry to the watches of all keys.
func (h *hub) tellAll(e driver.Entry) {
	h.mu.Lock()
	keys := slices.Collect(maps.Keys(h.watches))
	h.mu.Unlock()
	for _, key := range keys {
		h.deliver(key, e)
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for _, w := range h.watches {
		for ; w != nil; w = w.next {
			w.stopped.Store(true)
		}
	}
	clear(h.watches)
	h.stop()
	h.mu.Unlock()
	h.feeds.Wait()
}
