package peer

import (
	"context"
	"sync"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
	"github.com/tenure-go/tenure/internal/loglimit"
)

// hub passes changes from leaders to the watches of each key. It keeps one connection, with one
// goroutine, for each key that is watched and has a leader to dial.
type hub struct {
	cfg  Config
	dial *dialler

	mu      sync.Mutex
	closed  bool
	watches watches.Set
	subject map[string]*watchedKey // by key, while it has watches
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
	target  target
	run     *follower // the last follower; it may have ended
	trouble string    // the last report, for any leader
}

func newHub(d *dialler, cfg Config) *hub {
	return &hub{cfg: cfg, dial: d, subject: map[string]*watchedKey{}, heard: map[string]target{}}
}

func (h *hub) watch(key string, see func(driver.Entry)) (stop func(), err error) {
	w := watches.New(key, see)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	h.watches.Put(w)
	if h.subject[key] == nil {
		s := &watchedKey{}
		h.subject[key] = s
		h.follow(key, s, h.heard[key])
		delete(h.heard, key)
	}
	return func() { h.unwatch(w) }, nil
}

// unwatch ends the connection with the last watch.
func (h *hub) unwatch(w *watches.Watch) {
	if !w.Stop() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches.Remove(w) {
		h.follow(w.Key(), h.subject[w.Key()], target{})
		delete(h.subject, w.Key())
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

// notify calls the watches of a key without the lock, so that they may use the store.
func (h *hub) notify(key string, e driver.Entry) { h.notifyFrom(nil, key, e) }

// notifyFrom is notify for a change that a follower received. It ignores a follower that was
// replaced.
func (h *hub) notifyFrom(r *follower, key string, e driver.Entry) {
	h.mu.Lock()
	var to []*watches.Watch
	if s := h.subject[key]; s != nil && (r == nil || s.run == r) {
		to = h.watches.Of(key)
	}
	h.mu.Unlock()
	watches.Push(to, e)
}

// close stops all watches and returns when all followers have ended.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.watches.StopAll()
	for _, s := range h.subject {
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
