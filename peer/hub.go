package peer

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
)

// hub passes changes from leaders to the watches of each key. It keeps one connection, with one
// goroutine, for each key that is watched and has a leader to dial.
type hub struct {
	cfg  Config
	dial *dialler

	mu      sync.Mutex
	closed  bool
	subject map[string]*subject
	// heard are targets of keys without a watch yet: the first read may be quicker than the first
	// watch.
	heard map[string]target
	runs  sync.WaitGroup
}

// maxHeard bounds the number of keys that were read and never watched.
const maxHeard = 4096

// target is the leader to follow; the zero target is none. Each term is followed by a new run: a
// run ends with its leader's release, and a late read that still shows the same term must not start
// another.
type target struct {
	address, incarnation string
	term                 uint64
}

// subject is one key with watches. Its fields are guarded by the hub's lock.
type subject struct {
	watches []*watch // replaced, never changed in place: notify goes over it without the lock
	target  target
	run     *run   // the last one; it may have ended
	trouble string // as last reported, of any leader
}

type watch struct {
	see     func(driver.Entry)
	stopped atomic.Bool
}

func newHub(d *dialler, cfg Config) *hub {
	return &hub{cfg: cfg, dial: d, subject: map[string]*subject{}, heard: map[string]target{}}
}

func (h *hub) watch(key string, see func(driver.Entry)) (stop func(), err error) {
	w := &watch{see: see}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	s := h.subject[key]
	if s == nil {
		s = &subject{}
		h.subject[key] = s
		h.switchTo(key, s, h.heard[key])
		delete(h.heard, key)
	}
	s.watches = append(slices.Clone(s.watches), w)
	return func() { h.unwatch(key, s, w) }, nil
}

// unwatch ends the connection with the last watch.
func (h *hub) unwatch(key string, s *subject, w *watch) {
	if w.stopped.Swap(true) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.watches = slices.DeleteFunc(slices.Clone(s.watches), func(other *watch) bool { return other == w })
	if len(s.watches) == 0 && h.subject[key] == s {
		h.switchTo(key, s, target{})
		delete(h.subject, key)
	}
}

// setTarget sets the leader to follow from now on.
func (h *hub) setTarget(key string, t target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.subject[key]; s != nil {
		h.switchTo(key, s, t)
		return
	}
	delete(h.heard, key)
	if t == (target{}) || h.closed {
		return
	}
	if len(h.heard) >= maxHeard {
		for other := range h.heard {
			delete(h.heard, other)
			break
		}
	}
	h.heard[key] = t
}

// switchTo ends the run to the last target and starts one to the next. It is called under the lock.
func (h *hub) switchTo(key string, s *subject, t target) {
	if s.target == t || h.closed {
		return
	}
	s.target = t
	if s.run != nil {
		s.run.cancel()
		s.run = nil
	}
	if t == (target{}) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{hub: h, key: key, target: t, cancel: cancel}
	s.run = r
	h.runs.Go(func() {
		defer cancel()
		r.follow(ctx)
	})
}

// wordsOnly leaves out digits: the same fault comes with another port of this process each time,
// and with the time of day.
func wordsOnly(r rune) rune {
	if '0' <= r && r <= '9' {
		return -1
	}
	return r
}

// changed takes note of a run's report, and reports whether that is new.
func (h *hub) changed(r *run, err error) bool {
	trouble := ""
	if err != nil {
		trouble = strings.Map(wordsOnly, err.Error())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.subject[r.key]
	if s == nil || s.run != r || s.trouble == trouble {
		return false
	}
	s.trouble = trouble
	return true
}

// notify calls the watches of a key without the lock, so that they may use the store, and gives
// each a value of its own.
func (h *hub) notify(key string, e driver.Entry) { h.notifyFrom(nil, key, e) }

// notifyFrom is notify for a run's change: a run that was replaced is ignored.
func (h *hub) notifyFrom(r *run, key string, e driver.Entry) {
	h.mu.Lock()
	var watches []*watch
	if s := h.subject[key]; s != nil && (r == nil || s.run == r) {
		watches = s.watches
	}
	h.mu.Unlock()
	for _, w := range watches {
		if !w.stopped.Load() {
			own := e
			own.Value = bytes.Clone(e.Value)
			w.see(own)
		}
	}
}

// close stops all watches and returns when all runs have ended.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for _, s := range h.subject {
		for _, w := range s.watches {
			w.stopped.Store(true)
		}
		if s.run != nil {
			s.run.cancel()
		}
	}
	clear(h.subject)
	clear(h.heard)
	h.mu.Unlock()
	h.runs.Wait()
	h.dial.close()
}
