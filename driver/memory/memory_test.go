package memory_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/electiontest"
)

var (
	_ driver.Watcher   = (*memory.Store)(nil)
	_ driver.Bounded   = (*memory.Store)(nil)
	_ driver.Inspector = (*memory.Store)(nil)
	_ driver.Bounded   = (*memory.Polled)(nil)
	_ driver.Inspector = (*memory.Polled)(nil)
)

func TestPolledHasNoWatch(t *testing.T) {
	var s driver.Store = memory.NewPolled()
	if _, ok := s.(driver.Watcher); ok {
		t.Error("an election would wait for pushes that never come")
	}
}

func TestSwapFromAbsence(t *testing.T) {
	const key = "billing"
	tests := []struct {
		name    string
		why     string
		before  func(*memory.Store)
		from    driver.Version
		applies bool
	}{
		{"never written, from never", "the claim that need not wait", func(*memory.Store) {}, "never", true},
		{"never written, from empty", "empty means absent, and it is", func(*memory.Store) {}, "", true},
		{"live, from never", "there is a leader", func(s *memory.Store) { s.Put(key, []byte("x")) }, "never", false},
		{"live, from empty", "there is a leader", func(s *memory.Store) { s.Put(key, []byte("x")) }, "", false},
		{"deleted, from never", "there was a leader", func(s *memory.Store) { s.Delete(key) }, "never", false},
		{"deleted, from empty", "a marker has a version of its own", func(s *memory.Store) { s.Delete(key) }, "", false},
		{"deleted, from the marker", "that is its version", func(s *memory.Store) { s.Delete(key) }, "1", true},
		{"purged, from never", "there was a leader", func(s *memory.Store) { s.Delete(key); s.Purge(key) }, "never", false},
		{"purged, from empty", "it is absent", func(s *memory.Store) { s.Delete(key); s.Purge(key) }, "", true},
		{"purged, from its old version",
			"that state is gone", func(s *memory.Store) { s.Delete(key); s.Purge(key) }, "1", false},
		{"purged before any write, from never",
			"there was nothing to purge", func(s *memory.Store) { s.Purge(key) }, "never", true},
		{"another key written, from never",
			"pristine is meant of one key", func(s *memory.Store) { s.Put("other", []byte("x")) }, "never", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := memory.New()
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
	s := memory.New()
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
			s := memory.New()
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
	s := memory.New()
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
	s := memory.New()
	s.Put("a", []byte("old"))
	former := read(t, s, "a").Era
	s.Recreate()
	if e := read(t, s, "a"); !e.Absent() || e.Pristine || e.Floor != 0 || e.Era == former {
		t.Errorf("recreated as %+v: the leader of the former store may live", e)
	}
}

func TestRestoreBringsBackVersions(t *testing.T) {
	s := memory.New()
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
	s.Restore(memory.Snapshot{})
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
	drivertest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.New()) })
}

func TestConformancePolled(t *testing.T) {
	drivertest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.NewPolled()) })
}

func TestElection(t *testing.T) {
	electiontest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.New()) })
}

func TestElectionPolled(t *testing.T) {
	electiontest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.NewPolled()) })
}

func BenchmarkStore(b *testing.B) {
	open := func(testing.TB) drivertest.Harness { return harness(memory.New()) }
	drivertest.Benchmark(b, open)
	electiontest.Benchmark(b, open)
}
