package etcdkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

const (
	// reopenTimeout bounds one attempt to replace a lost stream.
	reopenTimeout = 2 * time.Second
	// The pause between such attempts grows from the first to the last.
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// read is a push that makes an election read.
var read = driver.Entry{Unverified: true}

// hub gives the events of one stream to the watches of each key.
type hub struct {
	store *Store
	// turn is held by the caller that starts the feed; a channel, so that waiting for it heeds the
	// context.
	turn chan struct{}

	mu      sync.Mutex
	closed  bool
	lost    error              // why no events come; nil: they come
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	watches watches.Set
	feeds   sync.WaitGroup // all that were ever started
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
			w.Push(read)
		}
	}
	return func() { h.remove(w) }, nil
}

// remove ends the feed with the last watch.
func (h *hub) remove(w *watches.Watch) {
	if !w.Stop() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches.Remove(w); h.watches.Empty() {
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

// start makes sure that a feed is running. One caller opens its first stream; the others wait for
// that.
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
	if err := f.open(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		f.stream.close()
		return errClosed
	}
	own, cancel := context.WithCancel(context.Background())
	h.halt, h.lost = cancel, nil
	h.feeds.Go(func() { f.run(own) })
	return nil
}

func (h *hub) running() (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false, errClosed
	}
	return h.halt != nil, nil
}

// pushes notes why no events come, or nil if they come again, and tells all watches. The context is
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
	case lost != nil:
		h.tellAll(driver.Entry{Lost: lost})
	case was != nil:
		h.tellAll(read)
	}
}

// silence returns why no events come; nil: they come.
func (h *hub) silence() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// deliver calls the watches of a key without the lock, so that they may use the store.
func (h *hub) deliver(key string, e driver.Entry) {
	h.mu.Lock()
	all := h.watches.Of(key)
	h.mu.Unlock()
	watches.Push(all, e)
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

// feed keeps the events coming: it replaces each lost stream by one that resumes behind the last
// event. It is one goroutine.
type feed struct {
	hub    *hub
	stream *stream
	at     point // the history of the stream, with the raft term of its last message
	next   int64 // the revision of the first event that is still to come; 0: not known
}

// open opens a stream. A read first shows the present point: a member of the cluster whose history
// was restored keeps a stream silent that resumes at a revision of the former history.
func (f *feed) open(ctx context.Context) error {
	now, err := f.hub.store.look(ctx)
	if err != nil {
		return err
	}
	moved := f.at.known() && now.era() != f.at.era()
	missed := moved || f.at.known() && f.next == 0
	if moved || f.next == 0 {
		f.next = now.revision + 1
	}
	f.at = now
	if f.stream, err = f.hub.store.newStream(ctx, f.next); err != nil {
		f.forget(err)
		return err
	}
	if missed {
		f.hub.tellAll(read)
	}
	return nil
}

// forget drops the place to resume at if it is not available any more.
func (f *feed) forget(err error) {
	if errors.Is(err, errCompacted) {
		f.next = 0
	}
}

// run ends with the context, and closes the stream then.
func (f *feed) run(ctx context.Context) {
	for {
		f.listen(ctx)
		if !f.reopen(ctx) {
			return
		}
	}
}

// listen passes events on until the stream is lost or the context ends, and closes the stream.
func (f *feed) listen(ctx context.Context) {
	defer context.AfterFunc(ctx, f.stream.close)()
	defer f.stream.close()
	for {
		events, term, err := f.stream.receive()
		f.forget(err)
		if err != nil || f.hub.store.past.now().changes != f.at.changes {
			return
		}
		f.at.term = term
		for _, e := range events {
			f.pass(e)
		}
	}
}

func (f *feed) pass(event *mvccpb.Event) {
	kv := event.Kv
	e := driver.Entry{Floor: uint64(kv.ModRevision), Era: f.at.era()}
	if event.Type == mvccpb.Event_PUT {
		e.Value, e.Version, e.Unproven = entryOf(kv.Value, kv.ModRevision, f.at)
	}
	f.next = kv.ModRevision + 1
	f.hub.store.past.see(f.at, kv.ModRevision)
	f.hub.deliver(string(bytes.TrimPrefix(kv.Key, []byte(f.hub.store.prefix))), e)
}

// reopen tries until it has a new stream. It waits first, since a stream may be lost as soon as it
// is open. After the first failure the elections poll until there is one, and then read. It returns
// false if the context ended first; there is no stream then.
func (f *feed) reopen(ctx context.Context) bool {
	for pause := firstPause; sleep(ctx, pause); pause = min(2*pause, lastPause) {
		attempt, cancel := context.WithTimeout(ctx, reopenTimeout)
		err := f.open(attempt)
		cancel()
		if err == nil {
			f.hub.pushes(ctx, nil)
			return true
		}
		f.hub.pushes(ctx, fmt.Errorf("etcdkv: no changes are pushed: %w", err))
	}
	return false
}

// sleep returns false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
