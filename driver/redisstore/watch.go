package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

// Watch calls see for changes of the cell until stop is called. All entries are unverified; one
// without a value only says that there may be a change. The first watch of a store subscribes, and
// the last one ends that. If the subscription is lost and the first attempt to subscribe again
// fails, see gets an entry with Lost.
//
// If the deadline of ctx comes while the store subscribes, the watch begins without pushes, and
// says so by an entry with Lost. It returns an error that wraps driver.ErrDenied if the right to
// subscribe is missing, the error of CheckKey, and any other error if the first attempt to
// subscribe fails or the store is closed.
func (s *Store) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	err = s.CheckKey(key)
	if err == nil {
		stop, err = s.hub.watch(ctx, key, see)
	}
	if err != nil {
		return nil, fmt.Errorf("redisstore: watch %s: %w", s.place(key), explain(err))
	}
	return stop, nil
}

var errClosed = errors.New("the store is closed")

// hub gives the messages of one subscription to the watches of each key.
type hub struct {
	client  rueidis.Client
	channel string
	feeds   sync.WaitGroup // all that were ever started

	mu      sync.Mutex
	closed  bool
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	tried   chan struct{}      // closed when the feed has subscribed, or failed to
	opened  bool               // the feed has subscribed
	lost    error              // why no messages come; nil: they come, or tried is not closed
	watches watches.Set
}

func newHub(client rueidis.Client, channel string) *hub {
	return &hub{client: client, channel: channel}
}

// watch waits for the first attempt to subscribe.
func (h *hub) watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	w := watches.New(key, see)
	tried, err := h.add(w)
	if err != nil {
		return nil, err
	}
	stop = func() {
		if w.Stop() {
			h.remove(w)
		}
	}
	select {
	case <-tried:
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			stop()
			return nil, context.Cause(ctx)
		}
	}
	opened, lost := h.state()
	if lost != nil && !opened && ctx.Err() == nil {
		stop()
		return nil, lost
	}
	if lost != nil {
		w.Push(silence(lost))
		if _, lost := h.state(); lost == nil { // since a moment ago
			w.Push(look)
		}
	}
	return stop, nil
}

// add starts a feed with the first watch.
func (h *hub) add(w *watches.Watch) (tried <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	h.watches.Put(w)
	if h.halt == nil {
		ctx, cancel := context.WithCancel(context.Background())
		h.halt, h.tried, h.opened, h.lost = cancel, make(chan struct{}), false, nil
		h.feeds.Go(func() { h.run(ctx) })
	}
	return h.tried, nil
}

// state returns whether the feed has ever subscribed, and why no messages come. If the feed is
// still at its first attempt, it notes that watches began without messages, so that they learn when
// it succeeds.
func (h *hub) state() (opened bool, lost error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.tried:
	default:
		h.lost = driver.ErrConnecting
	}
	return h.opened, h.lost
}

// remove ends the feed with the last watch.
func (h *hub) remove(w *watches.Watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches.Remove(w); h.watches.Empty() && h.halt != nil {
		h.halt()
		h.halt = nil
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.watches.StopAll()
	if h.halt != nil {
		h.halt()
		h.halt = nil
	}
	h.mu.Unlock()
	h.feeds.Wait()
}

// look is a push that makes an election read.
var look = driver.Entry{Unverified: true}

// silence is the push that says why no messages come.
func silence(cause error) driver.Entry {
	return driver.Entry{Lost: fmt.Errorf("redisstore: no changes are pushed: %w", cause)}
}

// pushes notes why no messages come, and tells all watches. With nil they come again: all elections
// read, because some may have been missed. The context is that of the feed.
func (h *hub) pushes(ctx context.Context, lost error) {
	h.mu.Lock()
	if ctx.Err() != nil { // another feed may be running
		h.mu.Unlock()
		return
	}
	first := !h.opened && h.lost == nil && lost == nil // no message was missed
	h.opened, h.lost = h.opened || lost == nil, lost
	select {
	case <-h.tried:
	default:
		close(h.tried)
	}
	all := h.watches.All()
	h.mu.Unlock()
	switch {
	case first:
	case lost == nil:
		watches.Push(all, look)
	default:
		watches.Push(all, silence(lost))
	}
}

// deliver calls the watches of the key without the lock, so that they may use the store.
func (h *hub) deliver(m rueidis.PubSubMessage) {
	key, e, err := parseNews(m.Message)
	if err != nil {
		e = look
	}
	h.mu.Lock()
	all := h.watches.Of(key)
	h.mu.Unlock()
	watches.Push(all, e)
}

// The pause between attempts to subscribe grows from the first to the last.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// run keeps a subscription until the context ends. A subscription that is lost is replaced at once;
// after a failure the elections poll until there is one.
func (h *hub) run(ctx context.Context) {
	for pause := firstPause; ; {
		subscribed, err := h.subscribe(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case subscribed:
			pause = firstPause
			continue
		}
		h.pushes(ctx, explain(err))
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// subscribe receives messages until the subscription ends. It reports whether there was one.
func (h *hub) subscribe(ctx context.Context) (subscribed bool, err error) {
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" {
			subscribed = true
			h.pushes(ctx, nil)
		}
	})
	err = h.client.Receive(hooked, h.client.B().Subscribe().Channel(h.channel).Build(), h.deliver)
	if err == nil {
		err = errors.New("the server ended the subscription")
	}
	return subscribed, err
}
