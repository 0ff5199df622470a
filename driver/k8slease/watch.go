package k8slease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/watches"
)

var errClosed = errors.New("the store is closed")

// hub gives the changes of one watch of the namespace to the watches of each key.
type hub struct {
	store *Store
	// turn is held by the caller that begins the feed; a channel, so that waiting for it heeds the
	// context.
	turn chan struct{}

	mu      sync.Mutex
	closed  bool
	lost    error              // why no changes come; nil: they come
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	stream  *stream            // of that feed, while there is one
	watches watches.Set
	feeds   sync.WaitGroup
}

func newHub(s *Store) *hub { return &hub{store: s, turn: make(chan struct{}, 1)} }

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
			w.Push(look)
		}
	}
	return func() { h.remove(w) }, nil
}

// look is a push that makes an election read.
var look = driver.Entry{Unverified: true}

// start makes sure that a feed is running. One caller begins it; the others wait for that.
func (h *hub) start(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	h.mu.Lock()
	running, closed := h.halt != nil, h.closed
	h.mu.Unlock()
	switch {
	case closed:
		return errClosed
	case running:
		return nil
	}
	first, err := h.open(ctx)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		first.close()
		return errClosed
	}
	alive, halt := context.WithCancel(context.Background())
	h.halt, h.lost, h.stream = halt, nil, first
	h.feeds.Go(func() { h.feed(alive, first) })
	return nil
}

// remove ends the feed with the last watch.
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
		h.stream.close()
		h.halt, h.stream = nil, nil
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.watches.StopAll()
	h.stop()
	h.mu.Unlock()
	h.feeds.Wait()
}

// renew ends the stream, because it began in another history. The feed begins another one.
func (h *hub) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stream != nil {
		h.stream.close()
	}
}

// silence returns why no changes come; nil: they come.
func (h *hub) silence() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

const (
	// openWithin bounds one attempt to begin a stream.
	openWithin = 5 * time.Second
	// firstOpenWithin is that of the first attempt after a loss, so that elections soon know of it.
	firstOpenWithin = 2 * time.Second
	// The pause between such attempts grows from the first to the last.
	firstPause, lastPause = 50 * time.Millisecond, 5 * time.Second
	// fewBrief streams in a row that are shorter than lastPause are no reason to poll.
	fewBrief = 5
)

// feed keeps the changes coming. It is one goroutine. It ends with the context.
func (h *hub) feed(ctx context.Context, s *stream) {
	for brief := 0; ; {
		began := time.Now()
		err := h.follow(s)
		s.close()
		brief++
		if time.Since(began) > lastPause {
			brief = 0
		}
		if brief > fewBrief { // a proxy that ends each stream soon
			h.pushes(ctx, fmt.Errorf("the watch of the namespace ends too often: %w", err))
			if !sleep(ctx, lastPause) {
				return
			}
		}
		if s = h.reopen(ctx); s == nil {
			return
		}
	}
}

// reopen tries until there is another stream. After the first failure the elections poll until
// there is one. It returns nil when the context has ended.
func (h *hub) reopen(ctx context.Context) *stream {
	within := firstOpenWithin
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		attempt, cancel := context.WithTimeout(ctx, within)
		s, err := h.open(attempt)
		cancel()
		if err == nil && h.adopt(ctx, s) {
			return s
		}
		if err != nil {
			h.pushes(ctx, fmt.Errorf("no changes in the namespace are pushed: %w", err))
			within = openWithin
			sleep(ctx, pause/2+rand.N(pause))
		}
	}
	return nil
}

// adopt makes s the stream of the feed, unless the feed has ended.
func (h *hub) adopt(ctx context.Context, s *stream) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		s.close()
		return false
	}
	h.stream, h.lost = s, nil
	return true
}

// pushes notes why no changes come, and tells all watches. The context is that of the feed.
func (h *hub) pushes(ctx context.Context, lost error) {
	h.mu.Lock()
	var all []*watches.Watch
	if ctx.Err() == nil {
		h.lost, all = lost, h.watches.All()
	}
	h.mu.Unlock()
	watches.Push(all, driver.Entry{Lost: lost})
}

// sleep returns false as soon as the context has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// deliver calls the watches of a key without the lock, so that they may use the store.
func (h *hub) deliver(key string, e driver.Entry) {
	watches.Push(h.of(key), e)
}

func (h *hub) of(key string) []*watches.Watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watches.Of(key)
}

// stream is one watch of the namespace.
type stream struct {
	generation uint64
	events     *json.Decoder
	body       io.Closer
	cancel     context.CancelFunc
}

func (s *stream) close() {
	s.cancel()
	if s.body != nil {
		_ = s.body.Close()
	}
}

// open lists the Leases, pushes their states, and begins a stream of the changes after the list. So
// no change is missed, whatever came before.
func (h *hub) open(ctx context.Context) (*stream, error) {
	return abandon.Run(ctx, &h.store.calls, func() (*stream, error) {
		alive, cancel := context.WithCancel(context.Background())
		s := &stream{cancel: cancel}
		unbind := context.AfterFunc(ctx, cancel)
		err := h.begin(alive, s)
		if !unbind() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			s.close()
		}
		return s, err
	}, (*stream).close)
}

func (h *hub) begin(ctx context.Context, s *stream) error {
	all, err := h.store.list(ctx, h.store.history.before(""), nil)
	if errors.Is(err, errRestored) {
		all, err = h.store.list(ctx, h.store.history.before(""), nil)
	}
	if err != nil {
		return err
	}
	s.generation = all.generation
	body, err := h.store.client.send(ctx, http.MethodGet, h.store.client.path("", url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {fmt.Sprint(all.revision)},
	}), nil)
	if err != nil {
		return err
	}
	s.body, s.events = body, json.NewDecoder(body)
	h.pushAll(all)
	return nil
}

// pushAll pushes the states of all keys that are watched.
func (h *hub) pushAll(all listed) {
	h.mu.Lock()
	absent := map[string]bool{}
	for _, key := range h.watches.Keys() {
		absent[key] = true
	}
	h.mu.Unlock()
	for _, l := range all.items {
		if absent[l.name] {
			delete(absent, l.name)
			h.push(all.generation, l)
		}
	}
	for key := range absent {
		h.deliver(key, h.store.history.absent(key, all.revision))
	}
}

// push pushes a state, if its history is the present one.
func (h *hub) push(generation uint64, l *lease) {
	if e, ok := h.store.history.pushed(generation, l); ok {
		h.deliver(l.name, e)
	}
}

// event is one of a watch. The object is a Lease, a Status, or one that has only a
// resourceVersion.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// follow pushes the changes of a stream until it ends.
func (h *hub) follow(s *stream) error {
	for {
		var e event
		if err := s.events.Decode(&e); err != nil {
			return err
		}
		if e.Type == "ERROR" { // such as a resourceVersion that is too old
			return parseStatus(0, "", e.Object)
		}
		l := new(lease)
		if err := json.Unmarshal(e.Object, l); err != nil {
			return err
		}
		if !h.store.history.progressed(s.generation, l.revision) {
			return errRestored
		}
		switch {
		case e.Type == "BOOKMARK" || len(h.of(l.name)) == 0:
		case e.Type == "DELETED":
			h.deliver(l.name, h.store.history.absent(l.name, l.revision))
		default:
			h.push(s.generation, l)
		}
	}
}
