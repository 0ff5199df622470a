package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
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
		f := &feed{hub: h, taken: map[string]count{}}
		go f.run(ctx)
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

const (
	// The pause between attempts to connect grows from the first to the last.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second

	// Anybody can notify. Of one key, the first few notifications in a period are taken at once,
	// and of the others the last when it ends.
	few    = 20
	period = time.Second

	// The first attempt to connect is short, so that elections soon know of a loss. A server that
	// is overloaded needs more time.
	firstAttempt, laterAttempt = 2 * time.Second, 2 * answerWithin
)

// look is a push that makes an election read.
var look = driver.Entry{Unverified: true}

// feed receives notifications, and opens a line again when it is lost. It is one goroutine.
type feed struct {
	hub   *hub
	line  *line
	taken map[string]count // of each key in this period
	ends  time.Time        // of this period
}

// count is the number of notifications of a key, and the last of those that wait.
type count struct {
	n    int
	last string
}

func (f *feed) run(ctx context.Context) {
	for f.open(ctx) {
		f.listen(ctx)
		f.line.close()
	}
}

// listen takes notifications until the line is lost or the context ends.
func (f *feed) listen(ctx context.Context) {
	last := time.Now() // the last ping
	ping := last.Add(pingAfter)
	for {
		until := ping
		if len(f.taken) > 0 && f.ends.Before(ping) {
			until = f.ends
		}
		payload, ok, err := f.line.next(ctx, until)
		if err != nil {
			return
		}
		if now := time.Now(); len(f.taken) > 0 && !now.Before(f.ends) {
			f.endPeriod()
		}
		if ok {
			if ping = time.Now().Add(pingAfter); ping.After(last.Add(pingEvery)) {
				ping = last.Add(pingEvery)
			}
			f.take(payload)
		}
		if !time.Now().Before(ping) {
			if f.hub.listener.ping(ctx, f.line) != nil {
				return
			}
			last = time.Now()
			ping = last.Add(pingAfter)
		}
	}
}

// take gives a notification to the watches of its key, or keeps it where there are too many.
func (f *feed) take(payload string) {
	key, _, _ := strings.Cut(payload, "\n")
	if !f.hub.watched(key) {
		return
	}
	if len(f.taken) == 0 {
		f.ends = time.Now().Add(period)
	}
	c := f.taken[key]
	c.n++
	if c.n <= few {
		f.deliver(payload)
	} else {
		c.last = payload
	}
	f.taken[key] = c
}

// deliver pushes what a notification says.
func (f *feed) deliver(payload string) {
	key, e, err := sqlstore.ParseNotification(payload)
	if err != nil {
		e = look
	}
	f.hub.deliver(key, e)
}

// endPeriod delivers the notifications that waited. The ones that were dropped before may have been
// the true ones, so it also makes the elections read.
func (f *feed) endPeriod() {
	for key, c := range f.taken {
		if c.last != "" {
			f.deliver(c.last)
			f.hub.deliver(key, look)
		}
	}
	clear(f.taken)
}

// open opens a line. If the first attempt fails, the elections poll until there is a line. It
// returns false when the context has ended.
func (f *feed) open(ctx context.Context) bool {
	within := firstAttempt
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		attempt, cancel := context.WithTimeout(ctx, within)
		n, err := f.hub.listener.open(attempt)
		cancel()
		if err == nil {
			f.line = n
			f.hub.pushes(ctx, nil)
			return true
		}
		f.hub.pushes(ctx, err)
		within = laterAttempt
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return false
		}
	}
}
