package natskv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/watches"
)

var errClosed = errors.New("the store is closed")

// hub gives the entries of one feed to the watches of each key. There may be ten thousand watches,
// of as many keys.
type hub struct {
	from  source
	calls *abandon.Calls
	// held by the caller that starts the feed; a channel, so that waiting for it heeds the context
	turn chan struct{}

	mu      sync.Mutex
	closed  bool
	lost    error              // why no messages come; nil: they come
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	watches watches.Set
	feeds   sync.WaitGroup // all that were ever started
}

func newHub(from source, under *abandon.Calls) *hub {
	return &hub{from: from, calls: under, turn: make(chan struct{}, 1)}
}

func (h *hub) watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	w := watches.New(key, see)
	h.mu.Lock()
	h.watches.Put(w)
	h.mu.Unlock()
	if err := h.start(ctx); err != nil {
		h.remove(w)
		return nil, err
	}
	if lost := h.silence(); lost != nil {
		w.Push(driver.Entry{Lost: lost})
		if h.silence() == nil { // since a moment ago
			w.Push(driver.Entry{Unverified: true})
		}
	}
	return func() { h.remove(w) }, nil
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

// silence returns why no messages come; nil: they come.
func (h *hub) silence() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// remove stops the feed with the last watch.
func (h *hub) remove(w *watches.Watch) {
	if !w.Stop() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches.Remove(w)
	if h.watches.Empty() {
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
	f := &feed{hub: h}
	if err := f.open(ctx); err != nil { // within the context, so that its errors are the caller's
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

// deliver calls the watches without the lock, so that they may use the store.
func (h *hub) deliver(key string, e driver.Entry) {
	h.mu.Lock()
	all := h.watches.Of(key)
	h.mu.Unlock()
	watches.Push(all, e)
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
	all := h.watches.All()
	h.mu.Unlock()
	watches.Push(all, e)
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.watches.StopAll()
	h.stop()
	h.mu.Unlock()
	h.feeds.Wait()
}

const (
	// reopenTimeout bounds one attempt to replace a lost link.
	reopenTimeout = 2 * time.Second
	// The pause between such attempts grows from the first to the last. A connection that comes
	// back ends it early.
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// source is the source of a whole bucket's messages.
type source interface {
	// open begins to call deliver for the messages of all keys, in order: those after the given
	// floor as far as they still exist. After 0, or where the bucket was recreated, those that are
	// written from now on.
	open(ctx context.Context, after uint64, deliver func(key string, e driver.Entry)) (*link, error)
	// reconnects signals that the connection was replaced, which loses a link silently. The channel
	// may be nil.
	reconnects() (again <-chan nats.Status, stop func())
}

// link is one stretch of messages. When it is lost, no more come, or some were missed.
type link struct {
	after uint64 // the floor after which it begins; 0 if not known
	life  life   // the life of the bucket whose messages it brings; 0 if not known
	floor uint64 // of an absent key when the link begins; 0 if not known
	// it does not resume after the given floor: the bucket was recreated or put back
	recreated bool
	lost      <-chan struct{} // closed when the link is lost
	stop      func()          // ends the link and does not block; to be called once, lost or not
}

func (l *link) end() { l.stop() }

// feed keeps the messages coming: it replaces each lost link by one that resumes after it. It is
// one goroutine.
type feed struct {
	hub  *hub
	link *link
	life life // of the links so far; 0 if not known
	// the floor of the last message delivered or known to be older; 0 if there is none
	last atomic.Uint64
}

func (f *feed) open(ctx context.Context) error {
	before := f.last.Load()
	l, err := abandon.Run(ctx, f.hub.calls, func() (*link, error) { return f.hub.from.open(ctx, before, f.pass) }, (*link).end)
	if err != nil {
		return err
	}
	f.link = l
	if l.after > 0 {
		f.last.CompareAndSwap(before, l.after) // unless a message has come already
	}
	if l.recreated || f.life != 0 && l.life != 0 && l.life != f.life {
		f.hub.recreated(l)
	}
	f.life = l.life
	return nil
}

// pass keeps the last floor, not the highest one: a stream that was put back to an older state
// begins again from there.
func (f *feed) pass(key string, e driver.Entry) {
	f.last.Store(e.Floor)
	f.hub.deliver(key, e)
}

// run ends with the context, and stops the link then.
func (f *feed) run(ctx context.Context) {
	again, stop := f.hub.from.reconnects()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			f.link.stop()
			return
		case <-f.link.lost:
		case <-again:
		}
		f.link.stop()
		if !f.reopen(ctx, again) {
			return
		}
	}
}

// reopen tries until it has a new link. After the first failure the elections poll until it has
// one, and then read. It returns false if the context ended first; there is no link then.
func (f *feed) reopen(ctx context.Context, again <-chan nats.Status) bool {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := f.attempt(ctx)
		if err == nil {
			f.hub.pushes(ctx, nil)
			return true
		}
		f.hub.pushes(ctx, fmt.Errorf("no changes of the bucket are pushed: %w", err))
		if !sleep(ctx, pause, again) {
			return false
		}
	}
}

func (f *feed) attempt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reopenTimeout)
	defer cancel()
	return f.open(ctx)
}

// sleep waits for d or for a signal on early. It returns false as soon as the context has ended.
func sleep(ctx context.Context, d time.Duration, early <-chan nats.Status) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-early:
	case <-timer.C:
	}
	return ctx.Err() == nil
}
