package drivertest

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
)

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
