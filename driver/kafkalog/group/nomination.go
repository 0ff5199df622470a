package group

import (
	"slices"
	"sync"
	"time"
)

// nomination is whether this member is the nominee, and those who are told.
type nomination struct {
	usable  time.Duration // how long an answer is good for, from when its request was sent
	changed chan struct{} // capacity 1: there may be something to tell

	mu       sync.Mutex
	assigned bool      // the group gave partition 0 to this member
	since    time.Time // when the last request was sent that the coordinator answered to a member; zero: none counts
	ended    bool
	timer    *time.Timer
	watches  []*watch
}

type watch struct {
	see  func(bool)
	told bool // the first call was made
	last bool
}

func newNomination(usable time.Duration) *nomination {
	n := &nomination{usable: usable, changed: make(chan struct{}, 1)}
	n.timer = time.AfterFunc(usable, n.wake)
	n.timer.Stop()
	return n
}

// wake has somebody look.
func (n *nomination) wake() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// assign is told what the group decided, by the answer to a request that was sent then.
func (n *nomination) assign(yes bool, sent time.Time) {
	n.mu.Lock()
	n.assigned = yes
	n.mu.Unlock()
	n.answered(sent)
}

// answered is told that the coordinator took a request that was sent then for one of a member.
func (n *nomination) answered(sent time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sent.After(n.since) {
		n.since = sent
	}
	n.timer.Reset(n.remaining())
	n.wake()
}

// lose is told that the group gave this member's place away.
func (n *nomination) lose() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.assigned, n.since = false, time.Time{}
	n.wake()
}

// end is for good.
func (n *nomination) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	n.timer.Stop()
	n.wake()
}

// owned reports whether partition 0 was given to this member and not taken away, whatever the time.
func (n *nomination) owned() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.assigned
}

// holds computes the answer from the clock. It is called under the lock.
func (n *nomination) holds() bool { return n.assigned && !n.ended && n.remaining() > 0 }

// remaining is called under the lock.
func (n *nomination) remaining() time.Duration { return n.usable - elapsed(n.since) }

// elapsed is the larger of what the monotonic clock and the wall clock make of it: the first does not count the time that a
// machine sleeps.
func elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

func (n *nomination) now() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.holds()
}

// watch registers see. Stop may be called from it.
func (n *nomination) watch(see func(bool)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		go see(false)
		return func() {}
	}
	w := &watch{see: see}
	n.watches = append(n.watches, w)
	n.wake()
	return func() { n.unwatch(w) }
}

func (n *nomination) unwatch(w *watch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watches = slices.DeleteFunc(n.watches, func(other *watch) bool { return other == w })
}

// tell calls those who do not know yet, without the lock, until the nomination has ended and they know.
func (n *nomination) tell() {
	for range n.changed {
		w, state, over := n.next()
		for ; w != nil; w, state, over = n.next() {
			w.see(state)
		}
		if over {
			return
		}
	}
}

// next is somebody to be told, and what. It counts as told from here on. If there is nobody, over says that there never
// will be.
func (n *nomination) next() (w *watch, state, over bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	state = n.holds()
	for _, w := range n.watches {
		if !w.told || w.last != state {
			w.told, w.last = true, state
			return w, state, false
		}
	}
	return nil, state, n.ended
}
