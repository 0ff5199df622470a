// Package watches pushes the changes of a store to the watches of each key. Use it in an adapter
// that is a driver.Watcher. A [Hub] lets all watches share one feed of changes. The adapter gives
// it a function that opens the feed. A [Set] only keeps the watches, for stores whose changes come
// without such a feed.
package watches

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
)

// Watch is one watch of a key.
type Watch struct {
	key     string
	see     func(driver.Entry)
	stopped atomic.Bool
}

// New returns a watch that is in no Set yet.
func New(key string, see func(driver.Entry)) *Watch { return &Watch{key: key, see: see} }

// Key returns the key that is watched.
func (w *Watch) Key() string { return w.key }

// Push calls see with an entry whose value is the watch's own, unless the watch is stopped. Call it
// without a lock, because see may use the store.
func (w *Watch) Push(e driver.Entry) {
	if w.stopped.Load() {
		return
	}
	e.Value = bytes.Clone(e.Value)
	w.see(e)
}

// Stop ends the pushes, and reports whether they had not ended before. Only then remove the watch
// from its Set.
func (w *Watch) Stop() bool { return !w.stopped.Swap(true) }

// Push pushes an entry to all of these watches.
func Push(all []*Watch, e driver.Entry) {
	for _, w := range all {
		w.Push(e)
	}
}

// Set holds watches by key. Its zero value is empty and ready for use. Guard it by the lock of the
// state that decides what is pushed. The watches that it returns may be used without that lock.
type Set struct {
	keys map[string][]*Watch // no element of a slice ever changes
}

// Put adds a watch.
func (s *Set) Put(w *Watch) {
	if s.keys == nil {
		s.keys = map[string][]*Watch{}
	}
	s.keys[w.key] = append(s.keys[w.key], w)
}

// Remove removes a watch, if it is in the set, and reports whether it was the last one of its key.
func (s *Set) Remove(w *Watch) (last bool) {
	of := s.keys[w.key]
	rest := slices.DeleteFunc(slices.Clone(of), func(other *Watch) bool { return other == w })
	if len(rest) == len(of) {
		return false
	}
	if len(rest) > 0 {
		s.keys[w.key] = rest
		return false
	}
	delete(s.keys, w.key)
	return true
}

// StopAll stops and removes all watches.
func (s *Set) StopAll() {
	for _, w := range s.All() {
		w.Stop()
	}
	clear(s.keys)
}

// Of returns the watches of a key, in the order in which they came.
func (s *Set) Of(key string) []*Watch { return s.keys[key] }

// Keys returns the keys that are watched, in no order.
func (s *Set) Keys() []string {
	all := make([]string, 0, len(s.keys))
	for key := range s.keys {
		all = append(all, key)
	}
	return all
}

// All returns the watches of all keys.
func (s *Set) All() (all []*Watch) {
	for _, of := range s.keys {
		all = append(all, of...)
	}
	return all
}

// Empty reports whether there is no watch.
func (s *Set) Empty() bool { return len(s.keys) == 0 }
