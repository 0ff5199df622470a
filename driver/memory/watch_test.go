package memory

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tenure-go/tenure/driver"
)

func mustWatch(t *testing.T, s *Store, key string, see func(driver.Entry)) (stop func()) {
	t.Helper()
	stop, err := s.Watch(t.Context(), key, see)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

// collector collects the entries that it sees. It locks, because any writer may push.
type collector struct {
	mu      sync.Mutex
	entries []driver.Entry
}

func (c *collector) see(e driver.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = append(c.entries, e)
}

func TestWritesPushBeforeTheyReturn(t *testing.T) {
	s := New()
	var c collector
	defer mustWatch(t, s, "k", c.see)()
	if _, err := s.CompareAndSwap(t.Context(), "k", never, []byte("x")); err != nil {
		t.Fatal(err)
	}
	s.Put("other", []byte("x"))
	s.Put("k", []byte("y"))
	s.Delete("k")
	s.Purge("k")
	s.Purge("k")
	got := []string{}
	for _, e := range c.entries {
		got = append(got, fmt.Sprintf("%s@%s/%d", e.Value, e.Version, e.Floor))
	}
	want := []string{"x@1/1", "y@3/3", "@4/4", "@/4"}
	if !slices.Equal(got, want) {
		t.Errorf("pushed %q, want %q", got, want)
	}
}

// A watch must not stay one entry behind because each of two writers leaves the push to the other.
func TestPushesKeepTheOrderOfWrites(t *testing.T) {
	s := New()
	var c collector
	defer mustWatch(t, s, "k", c.see)()
	const writers, writes = 8, 200
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range writes {
				s.Put("k", []byte("x"))
			}
		})
	}
	all.Wait()
	if len(c.entries) != writers*writes {
		t.Fatalf("%d of %d writes pushed", len(c.entries), writers*writes)
	}
	for i, e := range c.entries {
		if want := strconv.Itoa(i + 1); string(e.Version) != want || strconv.FormatUint(e.Floor, 10) != want {
			t.Fatalf("entry %d is %+v", i, e)
		}
	}
}

func TestSeeMayUseTheStore(t *testing.T) {
	s := New()
	var seen []driver.Version
	var stop func()
	stop = mustWatch(t, s, "k", func(e driver.Entry) {
		seen = append(seen, e.Version)
		if e.Version == "3" {
			stop()
		}
		s.Put("k", []byte("again"))
	})
	s.Put("k", []byte("first"))
	if want := []driver.Version{"1", "2", "3"}; !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

// A push that goes on after its last watch has stopped must not reach a watch that began later.
func TestWatchSeesLaterChangesAlone(t *testing.T) {
	s := New()
	var stop func()
	var later collector
	stop = mustWatch(t, s, "k", func(driver.Entry) {
		s.Put("k", []byte("before"))
		stop()
		mustWatch(t, s, "k", later.see)
		s.Put("k", []byte("after"))
	})
	s.Put("k", []byte("first"))
	if len(later.entries) != 1 || string(later.entries[0].Value) != "after" {
		t.Errorf("pushed %+v", later.entries)
	}
}

func TestWatchesLeaveNothing(t *testing.T) {
	s := New()
	before := runtime.NumGoroutine()
	var stops []func()
	for i := range 1000 {
		stops = append(stops, mustWatch(t, s, strconv.Itoa(i%100), func(driver.Entry) {}))
	}
	if after := runtime.NumGoroutine(); after > before+10 { // the runtime has some of its own
		t.Errorf("%d goroutines with 1,000 watches", after-before)
	}
	for _, stop := range stops {
		stop()
		stop()
	}
	if len(s.feeds) != 0 {
		t.Errorf("%d feeds without watches", len(s.feeds))
	}
}

func TestStoreFromOutsideWorksInBubble(t *testing.T) {
	s := New()
	synctest.Test(t, func(t *testing.T) {
		pushed := make(chan driver.Entry, 1)
		defer mustWatch(t, s, "k", func(e driver.Entry) { pushed <- e })()
		go s.Put("k", []byte("x"))
		if e := <-pushed; e.Version != "1" {
			t.Errorf("pushed %+v", e)
		}
	})
}
