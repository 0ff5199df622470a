package drivertest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/kit"
)

func watchCases() []testCase {
	return []testCase{
		{"watch pushes a change as a read shows it",
			"a push has the same effects as a read, so both must show the same entry", watchPushes},
		{"pushed version can be swapped from", "a follower that is pushed a release claims on it without reading", watchSwap},
		{"watch pushes a removal", "a leader whose record was removed must learn of it before it renews", watchRemoval},
		{"watch outlives the context of its set-up",
			"that context is canceled as soon as the watch has begun", watchOutlivesSetUp},
		{"watch is of one key", "a push of another election would start and end timers in this one", watchIsolated},
		{"pushed values are copies", "two elections that watch one key must not share a buffer", watchCopies},
		{"watches cost no goroutine each", "one process follows thousands of elections", watchesCheap},
	}
}

// watcher returns the store as a Watcher, or skips.
func (t *trial) watcher() driver.Watcher {
	t.Helper()
	w := driver.AbilitiesOf(t.Store).Watcher
	if w == nil {
		t.Skipf("the store is no driver.Watcher")
	}
	return w
}

// pushes records the entries that are pushed to one watch.
type pushes struct {
	stop func()

	mu      sync.Mutex
	entries []driver.Entry
	more    chan struct{} // closed and replaced with each entry
}

func (h *pushes) see(e driver.Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entries = append(h.entries, e)
	close(h.more)
	h.more = make(chan struct{})
}

func (h *pushes) all() ([]driver.Entry, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.entries), h.more
}

// watch begins a watch, with a context that ends right afterwards.
func (t *trial) watch(key string) *pushes {
	t.Helper()
	h := &pushes{more: make(chan struct{})}
	h.stop = t.watchWith(key, h.see)
	return h
}

func (t *trial) watchWith(key string, see func(driver.Entry)) (stop func()) {
	t.Helper()
	ctx, cancel := t.context()
	defer cancel()
	stop, err := t.watcher().Watch(ctx, key, see)
	if err != nil {
		t.Fatalf("watch of %q: %v", key, err)
	}
	return stop
}

// awaitPush waits for the push of an entry.
func (t *trial) awaitPush(h *pushes, what string, is func(driver.Entry) bool) driver.Entry {
	t.Helper()
	ctx, cancel := t.context()
	defer cancel()
	for {
		entries, more := h.all()
		if i := slices.IndexFunc(entries, is); i >= 0 {
			return entries[i]
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("%s is not pushed; pushed were %s", what, versions(entries))
		}
	}
}

// awaitPushOf waits for the push of a version.
func (t *trial) awaitPushOf(h *pushes, v driver.Version) driver.Entry {
	t.Helper()
	return t.awaitPush(h, fmt.Sprintf("version %q", v), func(e driver.Entry) bool { return e.Version == v })
}

func versions(entries []driver.Entry) string {
	all := []driver.Version{}
	for _, e := range entries {
		all = append(all, e.Version)
	}
	return fmt.Sprintf("%q", all)
}

func watchPushes(t *trial) {
	key := t.key("watch")
	v := t.create(key, []byte("start"))
	h := t.watch(key)
	defer h.stop()
	top := uint64(0)
	for range 8 {
		top = max(top, t.read(key).Floor) + 1
		value := fmt.Appendf(nil, "term %d", top)
		v = t.requireSwap(key, v, value)
		e := t.awaitPushOf(h, v)
		if string(e.Value) != string(value) {
			t.Errorf("version %q of %q was pushed as %s; it is %s", v, key, kit.Brief(e.Value), kit.Brief(value))
		}
		if e.Pristine {
			t.Errorf("version %q of %q was pushed as pristine", v, key)
		}
		if t.FloorTick == 0 {
			t.requireFloor(e, top)
		}
	}
}

func watchSwap(t *trial) {
	key := t.key("watch")
	h := t.watch(key)
	defer h.stop()
	t.create(key, []byte("released"))
	e := t.awaitPush(h, "the first write", func(e driver.Entry) bool { return string(e.Value) == "released" })
	v := t.requireSwap(key, e.Version, []byte("claimed"))
	t.requireValue(key, v, []byte("claimed"))
}

// watchRemoval uses only Delete, since a store need not push a purge.
func watchRemoval(t *trial) {
	t.watcher()
	if t.Delete == nil {
		t.Skipf("the harness cannot delete")
	}
	key := t.key("watch")
	h := t.watch(key)
	defer h.stop()
	t.awaitPushOf(h, t.create(key, []byte("first")))
	before := len(firstOf(h.all()))
	t.delete(key)
	t.awaitPush(h, "the removal", func(e driver.Entry) bool {
		return e.Absent() && len(firstOf(h.all())) > before
	})
}

func firstOf[A, B any](a A, _ B) A { return a }

func watchOutlivesSetUp(t *trial) {
	w, key := t.watcher(), t.key("watch")
	h := &pushes{more: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	stop, err := w.Watch(ctx, key, h.see)
	cancel()
	if err != nil {
		t.Fatalf("watch of %q: %v", key, err)
	}
	defer stop()
	v := t.create(key, []byte("start"))
	for i := range t.Rounds { // a watch that depends on the context ends in this time
		runtime.Gosched()
		v = t.requireSwap(key, v, fmt.Appendf(nil, "value %d", i))
	}
	t.awaitPushOf(h, v)
}

func watchIsolated(t *trial) {
	t.watcher()
	key := t.key("watch")
	h := t.watch(key)
	defer h.stop()
	t.createEach(similarKeys(key))
	t.awaitPushOf(h, t.create(key, []byte(key)))
	for _, e := range firstOf(h.all()) {
		if !e.Absent() && string(e.Value) != key {
			t.Errorf("the watch of %q was pushed %s", key, kit.Brief(e.Value))
		}
	}
}

func watchCopies(t *trial) {
	key := t.key("watch")
	a, b := t.watch(key), t.watch(key)
	defer a.stop()
	defer b.stop()
	v := t.create(key, []byte("first"))
	copy(t.awaitPushOf(a, v).Value, "XXXXX")
	if e := t.awaitPushOf(b, v); string(e.Value) != "first" {
		t.Errorf("what one watch of %q wrote into its entry is in another's: %s", key, kit.Brief(e.Value))
	}
	t.requireValue(key, v, []byte("first"))
}

// fixedGoroutines is how many goroutines a store may start for all its watches together.
const fixedGoroutines = 64

func watchesCheap(t *trial) {
	t.watcher()
	// From here on, everything that all watches share exists.
	defer t.watch(t.key("watch")).stop()
	before := runtime.NumGoroutine()
	all := map[string]*pushes{}
	for range t.Watches {
		key := t.key("watch")
		all[key] = t.watch(key)
		defer all[key].stop()
	}
	if after := runtime.NumGoroutine(); after > before+fixedGoroutines {
		t.Errorf("%d goroutines before and %d with %d watches more", before, after, t.Watches)
	}
	sample := 0
	for key, h := range all {
		t.awaitPushOf(h, t.create(key, []byte("value")))
		if sample++; sample == 8 {
			break
		}
	}
}

func watchStopCases() []testCase {
	return []testCase{
		{"nothing is pushed after stop", "an election that has ended cannot use it", stopEnds},
		{"stop may be called twice", "two callers may stop the same watch: one gives up, one cleans up", stopTwice},
		{"stop may be called from see", "the first entry is often the one that the watch waited for", stopFromSee},
		{"stop ends one watch alone", "the other elections of the process go on", stopOne},
		{"watches may start and stop while others write", "elections begin and end at any time", stopConcurrently},
	}
}

// stopEnds compares versions, not times. A call of see that began before stop may still be under
// way, but cannot carry a later write. Once a second watch has seen a later write, the first watch
// would have seen it, too.
func stopEnds(t *trial) {
	key := t.key("stop")
	stopped, other := t.watch(key), t.watch(key)
	defer other.stop()
	v := t.create(key, []byte("before"))
	t.awaitPushOf(stopped, v)
	stopped.stop()
	var late []driver.Version
	for i := range 4 {
		v = t.requireSwap(key, v, fmt.Appendf(nil, "after %d", i))
		t.awaitPushOf(other, v)
		late = append(late, v)
	}
	for _, e := range firstOf(stopped.all()) {
		if slices.Contains(late, e.Version) {
			t.Errorf("version %q, written after stop, was pushed", e.Version)
		}
	}
}

func stopTwice(t *trial) {
	h := t.watch(t.key("stop"))
	h.stop()
	if !within(t.timeLeft(), h.stop) {
		t.Errorf("the second stop does not return")
	}
}

// stopFromSee writes from another goroutine, since a store may push from within the write.
func stopFromSee(t *trial) {
	key := t.key("stop")
	var stop atomic.Pointer[func()]
	returned := make(chan struct{}, 1)
	f := t.watchWith(key, func(driver.Entry) {
		if s := stop.Swap(nil); s != nil {
			(*s)()
			returned <- struct{}{}
		}
	})
	stop.Store(&f)
	absent := t.read(key).Version
	if !within(t.timeLeft(), func() {
		_, _ = t.swap(key, absent, []byte("first"))
		<-returned
	}) {
		t.Fatalf("stop from within see does not return")
	}
	f()
}

func stopOne(t *trial) {
	key := t.key("stop")
	a, b, c := t.watch(key), t.watch(key), t.watch(key)
	defer a.stop()
	defer c.stop()
	b.stop()
	v := t.create(key, []byte("first"))
	t.awaitPushOf(a, v)
	t.awaitPushOf(c, v)
}

func stopConcurrently(t *trial) {
	t.watcher()
	key := t.key("stop")
	last := t.watch(key)
	defer last.stop()
	v := t.create(key, []byte("start"))
	together(4, func(i int) {
		for n := range t.Rounds {
			if i == 0 {
				v = t.overwrite(key, v, n)
				continue
			}
			t.watchBriefly(key)
		}
	})
	t.awaitPushOf(last, v)
}

// overwrite may also run outside the test's own goroutine, so it reports an error without ending
// the test.
func (t *trial) overwrite(key string, prev driver.Version, n int) driver.Version {
	v, err := t.swap(key, prev, fmt.Appendf(nil, "value %d", n))
	if err != nil {
		t.Errorf("write %d to %q: %v", n, key, err)
		return prev
	}
	return v
}

func (t *trial) watchBriefly(key string) {
	ctx, cancel := t.context()
	defer cancel()
	stop, err := driver.AbilitiesOf(t.Store).Watcher.Watch(ctx, key, func(driver.Entry) {})
	if err != nil {
		t.Errorf("watch of %q: %v", key, err)
		return
	}
	stop()
}
