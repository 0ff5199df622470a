package faults_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/able"
)

const (
	key   = "billing"
	delay = 300 * time.Millisecond
	limit = time.Second // of the context of every call
)

// fixed is a plan without chances, in which all delays are the same.
var fixed = faults.Plan{MinDelay: delay, MaxDelay: delay}

// inBubble runs a test in a bubble, over a store with faults.
func inBubble(t *testing.T, name string, plan faults.Plan, run func(*testing.T, *memory.Store, faults.Store)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			inner := memory.New()
			run(t, inner, faults.New(inner, 1, plan))
		})
	})
}

func TestFaultsOfWrites(t *testing.T) {
	impatient, slow := faults.Plan{Timeout: limit / 4}, faults.Plan{MinDelay: 2 * limit}
	for _, tt := range []struct {
		fault   faults.Fault
		plan    faults.Plan
		cut     bool // a partition begins during the delay
		why     string
		applied bool
		err     error
		after   time.Duration
	}{
		{faults.None, fixed, false, "nothing is wrong", true, nil, 0},
		{faults.Fail, fixed, false, "a connection is refused", false, faults.ErrInjected, 0},
		{faults.Deny, fixed, false, "rights were taken away", false, driver.ErrDenied, 0},
		{faults.LoseRequest, fixed, false, "a packet is lost", false, context.DeadlineExceeded, limit},
		{faults.LoseRequest, impatient, false, "the client gives up", false, os.ErrDeadlineExceeded, limit / 4},
		{faults.LoseAnswer, fixed, false, "a connection breaks", true, faults.ErrInjected, 0},
		{faults.DelayBefore, fixed, false, "a queue is long", true, nil, delay},
		{faults.DelayBefore, slow, false, "a queue is longer than the call", false, context.DeadlineExceeded, limit},
		{faults.DelayBefore, fixed, true, "the request has not arrived", false, faults.ErrInjected, limit},
		{faults.DelayAfter, fixed, false, "a disk is slow", true, nil, delay},
		{faults.DelayAfter, slow, false, "a disk is slower than the call", true, context.DeadlineExceeded, limit},
		{faults.DelayAfter, fixed, true, "the answer has not arrived", true, faults.ErrInjected, limit},
		{faults.HangBefore, fixed, false, "a network goes silent", false, context.DeadlineExceeded, limit},
		{faults.HangAfter, fixed, false, "a network goes silent, but the request is through", true, context.DeadlineExceeded, limit},
		{faults.LandLate, fixed, false, "a queue holds what its sender gave up", false, context.DeadlineExceeded, limit},
		{faults.LandLate, impatient, false, "the client gives up", false, os.ErrDeadlineExceeded, limit / 4},
		{faults.Replay, fixed, false, "a proxy retries", true, driver.ErrConflict, 0},
	} {
		inBubble(t, tt.fault.String(), tt.plan, func(t *testing.T, inner *memory.Store, f faults.Store) {
			f.Next(faults.Write, tt.fault)
			if tt.cut {
				time.AfterFunc(delay/2, f.Partition)
			}
			took, err := swap(f, "", "x")
			_, applied := held(t, inner)
			if applied != tt.applied || !errors.Is(err, tt.err) || took != tt.after {
				t.Errorf("applied %v after %v, error %v; want %v, %v, %v, as when %s", applied, took, err, tt.applied, tt.after, tt.err, tt.why)
			}
			if err != nil && tt.fault != faults.Replay && !errors.Is(err, faults.ErrInjected) {
				t.Errorf("%v does not say that it was injected", err)
			}
			if f.Heal(); tt.cut {
				return
			}
			if _, err := swap(f, read(t, inner).Version, "y"); err != nil {
				t.Errorf("the fault lasts: %v", err)
			}
			f.Wait()
		})
	}
}

func swap(s driver.Store, prev driver.Version, value string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	start := time.Now()
	_, err := s.CompareAndSwap(ctx, key, prev, []byte(value))
	return time.Since(start), err
}

func read(t *testing.T, s driver.Store) driver.Entry {
	t.Helper()
	e, err := s.Read(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func held(t *testing.T, s driver.Store) (string, bool) {
	t.Helper()
	e := read(t, s)
	return string(e.Value), !e.Absent()
}

func TestFaultsOfReads(t *testing.T) {
	for _, tt := range []struct {
		fault faults.Fault
		want  string
		err   error
		after time.Duration
	}{
		{faults.None, "new", nil, 0},
		{faults.Fail, "", faults.ErrInjected, 0},
		{faults.Deny, "", driver.ErrDenied, 0},
		{faults.LoseRequest, "", context.DeadlineExceeded, limit},
		{faults.LoseAnswer, "", faults.ErrInjected, 0},
		{faults.DelayBefore, "changed during the read", nil, delay},
		{faults.DelayAfter, "new", nil, delay},
		{faults.HangBefore, "", context.DeadlineExceeded, limit},
		{faults.HangAfter, "", context.DeadlineExceeded, limit},
		{faults.Stale, "old", nil, 0},
	} {
		inBubble(t, tt.fault.String(), fixed, func(t *testing.T, inner *memory.Store, f faults.Store) {
			for _, value := range []string{"old", "new"} {
				inner.Put(key, []byte(value))
				read(t, f)
			}
			time.AfterFunc(delay/2, func() { inner.Put(key, []byte("changed during the read")) })
			f.Next(faults.Read, tt.fault)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			start := time.Now()
			e, err := f.Read(ctx, key)
			if took := time.Since(start); string(e.Value) != tt.want || !errors.Is(err, tt.err) || took != tt.after {
				t.Errorf("%q after %v, error %v; want %q, %v, %v", e.Value, took, err, tt.want, tt.after, tt.err)
			}
		})
	}
}

func TestStaleReadNeedsAnEarlierValue(t *testing.T) {
	inner := memory.New()
	f := faults.New(inner, 1, faults.Plan{Chances: faults.Chances{faults.Stale: 1}})
	inner.Put(key, []byte("first"))
	for range 3 {
		if got, _ := held(t, f); got != "first" {
			t.Errorf("read %q", got)
		}
	}
	if n := len(f.Log()); n != 0 {
		t.Errorf("%d events, though nothing happened", n)
	}
}

// A late write must be refused like any other if the cell has changed since. Otherwise the inner
// store is broken.
func TestLateWriteLandsAfterItsCall(t *testing.T) {
	for newer, want := range map[string]string{"": "late", "newer": "newer"} {
		inBubble(t, "over "+want, fixed, func(t *testing.T, inner *memory.Store, f faults.Store) {
			f.Next(faults.Write, faults.LandLate)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			buffer := []byte("late")
			_, err := f.CompareAndSwap(ctx, key, "", buffer)
			copy(buffer, "XXXX")
			if _, applied := held(t, inner); err == nil || applied {
				t.Errorf("applied %v with error %v when the call returned", applied, err)
			}
			note := "landed: version 1"
			if newer != "" {
				inner.Put(key, []byte(newer))
				note = driver.ErrConflict.Error()
			}
			start := time.Now()
			f.Partition()
			f.Wait()
			if got, _ := held(t, inner); got != want || time.Since(start) != delay {
				t.Errorf("%q landed after %v, want %q after %v", got, time.Since(start), want, delay)
			}
			if log := f.String(); !strings.Contains(log, note) {
				t.Errorf("%q is not in the log:\n%s", note, log)
			}
			f.Wait() // with nothing to wait for
		})
	}
}

func TestEndedContextCallsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	inner := memory.New()
	f := faults.New(inner, 1, faults.Plan{Chances: faults.Chances{faults.LandLate: 1}})
	_, write := f.CompareAndSwap(ctx, key, "", []byte("x"))
	_, read := f.Read(ctx, key)
	_, watch := driver.AbilitiesOf(f).Watcher.Watch(ctx, key, func(driver.Entry) {})
	for _, err := range []error{write, read, watch} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
	f.Wait()
	if _, applied := held(t, inner); applied || len(f.Log()) > 0 {
		t.Errorf("applied %v, log %v", applied, f.Log())
	}
}

type operated interface {
	driver.Store
	Delete(key string) driver.Version
	Purge(key string)
}

// harness wraps a store without faults. It gives the kit a partition and a client without rights.
func harness(inner operated) drivertest.Harness {
	f := faults.New(inner, 1, faults.Plan{})
	return drivertest.Harness{
		Store:  f,
		Peer:   faults.New(inner, 2, faults.Plan{}),
		Denied: struct{ driver.Store }{faults.New(inner, 3, faults.Plan{Chances: faults.Chances{faults.Deny: 1}})},
		Delete: func(_ context.Context, key string) error { inner.Delete(key); return nil },
		Purge:  func(_ context.Context, key string) error { inner.Purge(key); return nil },
		Cut: func() func() {
			f.Partition()
			return f.Heal
		},
	}
}

func TestConformance(t *testing.T) {
	drivertest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.New()) })
}

func TestConformancePolled(t *testing.T) {
	drivertest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.NewPolled()) })
}

// An election over a wrapped store keeps to the limits of the store inside.
func TestElectionKnowsTheLimits(t *testing.T) {
	f := faults.New(able.Store{Store: memory.New()}, 1, faults.Plan{})
	for lease, refused := range map[time.Duration]bool{6 * time.Second: true, 8 * time.Second: false, 10 * time.Second: true} {
		cfg := tenure.Config{Lease: lease}
		_, atNew := tenure.New(f, "k", cfg)
		for _, err := range []error{atNew, cfg.Check(able.Store{}, "k")} {
			if err == nil || !strings.Contains(err.Error(), "no key") || strings.Contains(err.Error(), "Lease is") != refused {
				t.Errorf("lease %v: %v", lease, err)
			}
		}
	}
}

// No ability passes by a partition.
func TestPartitionHangsEveryCall(t *testing.T) {
	noRight := able.Store{}.CheckRights(t.Context(), key)
	for name, call := range map[string]func(context.Context, faults.Store, driver.Abilities) error{
		"read": func(ctx context.Context, f faults.Store, _ driver.Abilities) error {
			_, err := f.Read(ctx, key)
			return err
		},
		"write": func(ctx context.Context, f faults.Store, _ driver.Abilities) error {
			_, err := f.CompareAndSwap(ctx, key, "", []byte("x"))
			return err
		},
		"watch": func(ctx context.Context, _ faults.Store, a driver.Abilities) error {
			_, err := a.Watcher.Watch(ctx, key, func(driver.Entry) {})
			return err
		},
		"inspect": func(ctx context.Context, _ faults.Store, a driver.Abilities) error {
			_, err := a.Inspector.Inspect(ctx, time.Second)
			return err
		},
		"list": func(ctx context.Context, _ faults.Store, a driver.Abilities) error {
			_, err := a.Inspector.Keys(ctx)
			return err
		},
		"ask": func(ctx context.Context, _ faults.Store, a driver.Abilities) error {
			_, err := a.Presence.Candidates(ctx, key)
			return err
		},
		"rights": func(ctx context.Context, _ faults.Store, a driver.Abilities) error {
			return a.Inspector.CheckRights(ctx, key)
		},
	} {
		inBubble(t, name, faults.Plan{}, func(t *testing.T, inner *memory.Store, _ faults.Store) {
			f := faults.New(able.Store{Store: inner}, 1, faults.Plan{})
			f.Partition()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			start := time.Now()
			time.AfterFunc(limit/2, f.Heal) // too late for this call
			err := call(ctx, f, driver.AbilitiesOf(f))
			if took := time.Since(start); took != limit || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v after %v", err, took)
			}
			if err := call(t.Context(), f, driver.AbilitiesOf(f)); err != nil && err.Error() != noRight.Error() {
				t.Errorf("after it healed: %v", err)
			}
		})
	}
}

// A question that does not arrive is not answered.
func TestPartitionKeepsQuestionsOut(t *testing.T) {
	cells := memory.New()
	f := faults.New(cells, 1, faults.Plan{})
	stop, err := driver.AbilitiesOf(f).Presence.Announce(t.Context(), key, func() []byte { return []byte("a") })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, cut := range []bool{false, true} {
		if cut {
			f.Partition()
		}
		if all, err := cells.Candidates(t.Context(), key); err != nil || (len(all) == 0) != cut {
			t.Errorf("cut %v: %q, %v", cut, all, err)
		}
	}
}

// A scripted fault must affect the operation that its test means, not one that a partition swallows
// anyway.
func TestPartitionKeepsScripts(t *testing.T) {
	inBubble(t, "of a denial", faults.Plan{}, func(t *testing.T, _ *memory.Store, f faults.Store) {
		f.Next(faults.Write, faults.Deny)
		f.Partition()
		if _, err := swap(f, "", "x"); errors.Is(err, driver.ErrDenied) {
			t.Error("the script ran in the partition")
		}
		f.Heal()
		if _, err := swap(f, "", "x"); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("error %v after it healed", err)
		}
	})
}

// pushed collects the values that a watch receives.
type pushed struct {
	mu     sync.Mutex
	values []string
}

func (h *pushed) see(e driver.Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.values = append(h.values, string(e.Value))
}

func (h *pushed) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.values, " ")
}

func watch(t *testing.T, f faults.Store, see func(driver.Entry)) (stop func()) {
	t.Helper()
	stop, err := driver.AbilitiesOf(f).Watcher.Watch(t.Context(), key, see)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

func TestFaultsOfPushes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script []faults.Fault
		want   string
	}{
		{"none", nil, "1 2 3 4"},
		{"drop", []faults.Fault{faults.Drop, faults.None, faults.Drop}, "2 4"},
		{"delay", []faults.Fault{faults.Delay}, "2 3 4 1"},
		{"double", []faults.Fault{faults.None, faults.Double}, "1 2 2 3 4"},
		{"reorder", []faults.Fault{faults.Reorder}, "2 1 3 4"},
		{"reorder two", []faults.Fault{faults.Reorder, faults.Reorder}, "1 3 2 4"},
		{"reorder past a drop", []faults.Fault{faults.Reorder, faults.Drop}, "3 1 4"},
		{"reorder the last", []faults.Fault{faults.None, faults.None, faults.None, faults.Reorder}, "1 2 3"},
	} {
		inBubble(t, tt.name, fixed, func(t *testing.T, inner *memory.Store, f faults.Store) {
			var h pushed
			defer watch(t, f, h.see)()
			f.Next(faults.Push, tt.script...)
			for _, value := range []string{"1", "2", "3", "4"} {
				inner.Put(key, []byte(value))
			}
			f.Wait()
			if got := h.text(); got != tt.want {
				t.Errorf("received %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSilentWatches(t *testing.T) {
	inBubble(t, "after stop", fixed, func(t *testing.T, inner *memory.Store, f faults.Store) {
		var h pushed
		stop := watch(t, f, h.see)
		f.Next(faults.Push, faults.Delay, faults.Reorder)
		inner.Put(key, []byte("delayed"))
		inner.Put(key, []byte("held"))
		stop()
		stop()
		inner.Put(key, []byte("after"))
		f.Wait()
		if got := h.text(); got != "" {
			t.Errorf("received %q", got)
		}
	})
	inBubble(t, "in a partition", fixed, func(t *testing.T, inner *memory.Store, f faults.Store) {
		var h pushed
		defer watch(t, f, h.see)()
		f.Next(faults.Push, faults.Delay)
		inner.Put(key, []byte("under way"))
		f.Partition()
		inner.Put(key, []byte("cut off"))
		f.Wait()
		f.Heal()
		inner.Put(key, []byte("healed"))
		if got := h.text(); got != "healed" {
			t.Errorf("received %q", got)
		}
	})
}

func TestSetUpOfWatchFails(t *testing.T) {
	for _, tt := range []struct {
		fault faults.Fault
		err   error
		after time.Duration
	}{
		{faults.Fail, faults.ErrInjected, 0},
		{faults.Deny, driver.ErrDenied, 0},
		{faults.HangBefore, context.DeadlineExceeded, limit},
		{faults.DelayBefore, nil, delay},
	} {
		inBubble(t, tt.fault.String(), fixed, func(t *testing.T, inner *memory.Store, f faults.Store) {
			f.Next(faults.Watch, tt.fault)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			var h pushed
			start := time.Now()
			_, err := driver.AbilitiesOf(f).Watcher.Watch(ctx, key, h.see)
			if took := time.Since(start); !errors.Is(err, tt.err) || took != tt.after {
				t.Errorf("error %v after %v, want %v after %v", err, took, tt.err, tt.after)
			}
			inner.Put(key, []byte("x"))
			if received := h.text() != ""; received != (err == nil) {
				t.Errorf("pushed: %v, with error %v", received, err)
			}
		})
	}
}
