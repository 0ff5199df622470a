package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/electiontest"
)

var (
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Bounded   = (*Polled)(nil)
	_ driver.Inspector = (*Polled)(nil)
)

func TestPolledHasNoWatch(t *testing.T) {
	var s driver.Store = NewPolled()
	if _, ok := s.(driver.Watcher); ok {
		t.Error("an election would wait for pushes that never come")
	}
}

func TestSwapFromAbsence(t *testing.T) {
	const key = "billing"
	tests := []struct {
		name    string
		why     string
		before  func(*Store)
		from    driver.Version
		applies bool
	}{
		{"never written, from never", "the claim that need not wait", func(*Store) {}, "never", true},
		{"never written, from empty", "empty means absent, and it is", func(*Store) {}, "", true},
		{"live, from never", "there is a leader", func(s *Store) { s.Put(key, []byte("x")) }, "never", false},
		{"live, from empty", "there is a leader", func(s *Store) { s.Put(key, []byte("x")) }, "", false},
		{"deleted, from never", "there was a leader", func(s *Store) { s.Delete(key) }, "never", false},
		{"deleted, from empty", "a marker has a version of its own", func(s *Store) { s.Delete(key) }, "", false},
		{"deleted, from the marker", "that is its version", func(s *Store) { s.Delete(key) }, "1", true},
		{"purged, from never", "there was a leader", func(s *Store) { s.Delete(key); s.Purge(key) }, "never", false},
		{"purged, from empty", "it is absent", func(s *Store) { s.Delete(key); s.Purge(key) }, "", true},
		{"purged, from its old version",
			"that state is gone", func(s *Store) { s.Delete(key); s.Purge(key) }, "1", false},
		{"purged before any write, from never",
			"there was nothing to purge", func(s *Store) { s.Purge(key) }, "never", true},
		{"another key written, from never",
			"pristine is meant of one key", func(s *Store) { s.Put("other", []byte("x")) }, "never", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := New()
			tt.before(s)
			_, err := s.CompareAndSwap(t.Context(), key, tt.from, []byte("y"))
			if applied := err == nil; applied != tt.applies || !applied && !errors.Is(err, driver.ErrConflict) {
				t.Errorf("error %v, want applied: %v, because %s", err, tt.applies, tt.why)
			}
		})
	}
}

func TestEntries(t *testing.T) {
	const key = "billing"
	s := New()
	steps := []struct {
		name string
		why  string
		do   func()
		want driver.Entry
	}{
		{"nothing", "there was never a write", func() {}, driver.Entry{Version: "never", Pristine: true}},
		{"other key",
			"the sequence is that of the whole store",
			func() { s.Put("other", []byte("x")) }, driver.Entry{Version: "never", Pristine: true, Floor: 1}},
		{"put",
			"the version is the write's sequence",
			func() { s.Put(key, []byte("x")) }, driver.Entry{Value: []byte("x"), Version: "2", Floor: 2}},
		{"other key again",
			"the floor rises, the version stays",
			func() { s.Put("other", []byte("x")) }, driver.Entry{Value: []byte("x"), Version: "2", Floor: 3}},
		{"delete", "the marker is a write", func() { s.Delete(key) }, driver.Entry{Version: "4", Floor: 4}},
		{"purge", "the sequence is all that stays", func() { s.Purge(key) }, driver.Entry{Floor: 4}},
		{"put again",
			"no version recurs", func() { s.Put(key, []byte("y")) }, driver.Entry{Value: []byte("y"), Version: "5", Floor: 5}},
	}
	for _, step := range steps {
		step.do()
		if got := read(t, s, key); !equal(got, step.want) {
			t.Errorf("%s: %+v, want %+v, because %s", step.name, got, step.want, step.why)
		}
	}
}

func read(t *testing.T, s driver.Store, key string) driver.Entry {
	t.Helper()
	e, err := s.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func equal(a, b driver.Entry) bool {
	return bytes.Equal(a.Value, b.Value) && a.Version == b.Version && a.Floor == b.Floor && a.Pristine == b.Pristine
}

func TestRefusals(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name  string
		why   string
		ctx   context.Context
		key   string
		value []byte
		ok    bool
	}{
		{"largest value and key",
			"the limits are included", t.Context(), strings.Repeat("k", 512), make([]byte, driver.MaxValue), true},
		{"too long a value", "an election would never write it", t.Context(), "k", make([]byte, driver.MaxValue+1), false},
		{"no key", "a name was forgotten", t.Context(), "", []byte("x"), false},
		{"too long a key", "no other store holds it", t.Context(), strings.Repeat("k", 513), []byte("x"), false},
		{"key of other bytes", "it could not be printed", t.Context(), "\xff", []byte("x"), false},
		{"ended context", "the caller is gone", over, "k", []byte("x"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := New()
			_, err := s.CompareAndSwap(tt.ctx, tt.key, "", tt.value)
			if (err == nil) != tt.ok {
				t.Errorf("error %v, because %s", err, tt.why)
			}
			if errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied) {
				t.Errorf("%v is no outcome of the store's", err)
			}
			if floor := read(t, s, "other").Floor; (floor == 1) != tt.ok {
				t.Errorf("%d writes", floor)
			}
		})
	}
}

func TestErrorWrapsTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := New()
	_, read := s.Read(ctx, "k")
	_, inspect := s.Inspect(ctx, time.Second)
	_, watch := s.Watch(ctx, "k", func(driver.Entry) {})
	_, keys := s.Keys(ctx)
	_, announce := s.Announce(ctx, "k", nil)
	_, ask := s.Candidates(ctx, "k")
	for _, err := range []error{read, inspect, watch, keys, announce, ask} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
}

func TestRecreatedStoreIsNotPristine(t *testing.T) {
	s := New()
	s.Put("a", []byte("old"))
	former := read(t, s, "a").Era
	s.Recreate()
	if e := read(t, s, "a"); !e.Absent() || e.Pristine || e.Floor != 0 || e.Era == former {
		t.Errorf("recreated as %+v: the leader of the former store may live", e)
	}
}

func TestRestoreBringsBackVersions(t *testing.T) {
	s := New()
	s.Put("a", []byte("old"))
	backup := s.Snapshot()
	v := s.Put("a", []byte("new"))
	s.Put("b", []byte("new"))
	s.Restore(backup)
	if e := read(t, s, "a"); string(e.Value) != "old" || e.Version != "1" || e.Floor != 1 {
		t.Errorf("restored as %+v", e)
	}
	if e := read(t, s, "b"); !e.Pristine {
		t.Errorf("what the backup does not know is %+v", e)
	}
	if again := s.Put("a", []byte("other")); again != v {
		t.Errorf("version %q, not %q again: a restored store forgets what it gave out", again, v)
	}
	s.Restore(backup)
	if e := read(t, s, "a"); string(e.Value) != "old" {
		t.Errorf("writes after a restore changed the snapshot: %+v", e)
	}
	s.Restore(Snapshot{})
	if e := read(t, s, "a"); !e.Pristine || e.Floor != 0 {
		t.Errorf("restored to nothing as %+v", e)
	}
}

// operated is either kind of store, with the methods of an operator.
type operated interface {
	driver.Store
	Delete(key string) driver.Version
	Purge(key string)
	Recreate()
}

func harness(s operated) drivertest.Harness {
	return drivertest.Harness{
		Store:  s,
		Delete: func(_ context.Context, key string) error { s.Delete(key); return nil },
		Purge:  func(_ context.Context, key string) error { s.Purge(key); return nil },

		Recreate: func(context.Context) error { s.Recreate(); return nil },
	}
}

func TestConformance(t *testing.T) {
	drivertest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(New()) })
}

func TestConformancePolled(t *testing.T) {
	drivertest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(NewPolled()) })
}

func TestElection(t *testing.T) {
	electiontest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(New()) })
}

func TestElectionPolled(t *testing.T) {
	electiontest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(NewPolled()) })
}

func BenchmarkStore(b *testing.B) {
	open := func(testing.TB) drivertest.Harness { return harness(New()) }
	drivertest.Benchmark(b, open)
}

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
