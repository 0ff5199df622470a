package peer

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/loglimit"
)

// hub passes changes from leaders to the watches of each key. It keeps one connection, with one
// goroutine, for each key that is watched and has a leader to dial.
type hub struct {
	cfg  Config
	dial *dialler

	mu      sync.Mutex
	closed  bool
	subject map[string]*watchedKey
	// heard has the targets of keys without a watch yet, because the first read may come before the
	// first watch.
	heard     map[string]target
	followers sync.WaitGroup
}

// maxHeard bounds the number of keys that were read and never watched.
const maxHeard = 4096

// target is the leader to follow; the zero target is none. Each term has a new follower, which ends
// with the leader's release. A late read that still shows the same term must not start another one.
type target struct {
	address, incarnation string
	term                 uint64
}

// watchedKey is one key with watches. Its fields are under the hub's lock.
type watchedKey struct {
	watches []*watch // replaced, never changed in place: notify iterates over it without the lock
	target  target
	run     *follower // the last follower; it may have ended
	trouble string    // the last report, for any leader
}

type watch struct {
	see     func(driver.Entry)
	stopped atomic.Bool
}

func newHub(d *dialler, cfg Config) *hub {
	return &hub{cfg: cfg, dial: d, subject: map[string]*watchedKey{}, heard: map[string]target{}}
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
		s = &watchedKey{}
		h.subject[key] = s
		h.follow(key, s, h.heard[key])
		delete(h.heard, key)
	}
	s.watches = append(slices.Clone(s.watches), w)
	return func() { h.unwatch(key, s, w) }, nil
}

// unwatch ends the connection with the last watch.
func (h *hub) unwatch(key string, s *watchedKey, w *watch) {
	if w.stopped.Swap(true) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.watches = slices.DeleteFunc(slices.Clone(s.watches), func(other *watch) bool { return other == w })
	if len(s.watches) == 0 && h.subject[key] == s {
		h.follow(key, s, target{})
		delete(h.subject, key)
	}
}

// setTarget sets the leader to follow from now on.
func (h *hub) setTarget(key string, t target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.subject[key]; s != nil {
		h.follow(key, s, t)
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

// follow ends the follower of the last target and starts one for the next. It is called under the
// lock.
func (h *hub) follow(key string, s *watchedKey, t target) {
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
	r := &follower{hub: h, key: key, target: t, cancel: cancel}
	s.run = r
	h.followers.Go(func() {
		defer cancel()
		r.follow(ctx)
	})
}

// isNewReport records the report of a follower, and returns whether it differs from the last one.
func (h *hub) isNewReport(r *follower, err error) bool {
	trouble := ""
	if err != nil {
		trouble = loglimit.Cause(err.Error(), r.key)
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

// notifyFrom is notify for a change that a follower received. It ignores a follower that was
// replaced.
func (h *hub) notifyFrom(r *follower, key string, e driver.Entry) {
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

// close stops all watches and returns when all followers have ended.
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
	h.followers.Wait()
	h.dial.close()
}
