package faults_test

import (
	"context"
	"errors"
	"os"
	"strings"
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

func TestFaultsOfWrites(t *testing.T) {
	tests := []struct {
		fault   faults.Fault
		why     string
		applied bool
		err     error
		after   time.Duration
	}{
		{faults.None, "nothing is wrong", true, nil, 0},
		{faults.Fail, "a connection is refused", false, faults.ErrInjected, 0},
		{faults.Deny, "rights were taken away", false, driver.ErrDenied, 0},
		{faults.LoseRequest, "a packet is lost", false, context.DeadlineExceeded, limit},
		{faults.LoseAnswer, "a connection breaks", true, faults.ErrInjected, 0},
		{faults.DelayBefore, "a queue is long", true, nil, delay},
		{faults.DelayAfter, "a disk is slow", true, nil, delay},
		{faults.HangBefore, "a network goes silent", false, context.DeadlineExceeded, limit},
		{faults.HangAfter, "a network goes silent, but the request is through", true, context.DeadlineExceeded, limit},
		{faults.LandLate, "a queue holds what its sender gave up", false, context.DeadlineExceeded, limit},
		{faults.Replay, "a proxy retries", true, driver.ErrConflict, 0},
	}
	for _, tt := range tests {
		t.Run(tt.fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New()
				f := faults.New(inner, 1, fixed)
				f.Next(faults.Write, tt.fault)
				took, err := swap(f, "", "x")
				_, applied := held(t, inner)
				if applied != tt.applied || !errors.Is(err, tt.err) || took != tt.after {
					t.Errorf("applied %v after %v, error %v; want %v, %v, %v, as when %s", applied, took, err, tt.applied, tt.after, tt.err, tt.why)
				}
				if err != nil && tt.fault != faults.Replay && !errors.Is(err, faults.ErrInjected) {
					t.Errorf("%v does not say that it was injected", err)
				}
				if _, err := swap(f, read(t, inner).Version, "y"); err != nil {
					t.Errorf("the fault lasts: %v", err)
				}
				f.Wait()
			})
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
	tests := []struct {
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
	}
	for _, tt := range tests {
		t.Run(tt.fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New()
				f := faults.New(inner, 1, fixed)
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

func TestLateWriteIsAppliedAfterItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New()
		f := faults.New(inner, 1, fixed)
		f.Next(faults.Write, faults.LandLate)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		buffer := []byte("late")
		_, err := f.CompareAndSwap(ctx, key, "", buffer)
		copy(buffer, "XXXX")
		if _, applied := held(t, inner); err == nil || applied {
			t.Errorf("applied %v with error %v when the call returned", applied, err)
		}
		start := time.Now()
		f.Partition()
		f.Wait()
		if got, _ := held(t, inner); got != "late" || time.Since(start) != delay {
			t.Errorf("%q landed after %v, want %q after %v", got, time.Since(start), "late", delay)
		}
		if log := f.String(); !strings.Contains(log, "landed: version 1") {
			t.Errorf("the landing is not in the log:\n%s", log)
		}
		f.Wait() // with nothing to wait for
	})
}

// A late write must be refused like any other if the cell has changed since. Otherwise the inner
// store is broken.
func TestLateWriteIsCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New()
		f := faults.New(inner, 1, fixed)
		f.Next(faults.Write, faults.LandLate)
		_, _ = swap(f, "", "late")
		inner.Put(key, []byte("newer"))
		f.Wait()
		if got, _ := held(t, inner); got != "newer" {
			t.Errorf("the cell holds %q", got)
		}
		if log := f.String(); !strings.Contains(log, driver.ErrConflict.Error()) {
			t.Errorf("the conflict is not in the log:\n%s", log)
		}
	})
}

func TestTimeoutEndsLostRequests(t *testing.T) {
	for _, fault := range []faults.Fault{faults.LoseRequest, faults.LandLate} {
		t.Run(fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := faults.New(memory.New(), 1, faults.Plan{Timeout: limit / 4})
				f.Next(faults.Write, fault)
				took, err := swap(f, "", "x")
				if took != limit/4 || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("error %v after %v", err, took)
				}
				f.Wait()
			})
		})
	}
}

func TestDelayBeyondTheContext(t *testing.T) {
	tests := []struct {
		fault   faults.Fault
		applied bool
	}{{faults.DelayBefore, false}, {faults.DelayAfter, true}}
	for _, tt := range tests {
		t.Run(tt.fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New()
				f := faults.New(inner, 1, faults.Plan{MinDelay: 2 * limit})
				f.Next(faults.Write, tt.fault)
				took, err := swap(f, "", "x")
				if _, applied := held(t, inner); applied != tt.applied || took != limit || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("applied %v after %v, error %v", applied, took, err)
				}
			})
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
		Denied: faults.New(inner, 3, faults.Plan{Chances: faults.Chances{faults.Deny: 1}}),
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

func TestPartitionHangsEveryCall(t *testing.T) {
	calls := map[string]func(context.Context, faults.Store) error{
		"read": func(ctx context.Context, f faults.Store) error {
			_, err := f.Read(ctx, key)
			return err
		},
		"write": func(ctx context.Context, f faults.Store) error {
			_, err := f.CompareAndSwap(ctx, key, "", []byte("x"))
			return err
		},
		"watch": func(ctx context.Context, f faults.Store) error {
			_, err := driver.AbilitiesOf(f).Watcher.Watch(ctx, key, func(driver.Entry) {})
			return err
		},
		"inspect": func(ctx context.Context, f faults.Store) error {
			_, err := driver.AbilitiesOf(f).Inspector.Inspect(ctx, time.Second)
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New()
				f := faults.New(inner, 1, faults.Plan{})
				f.Partition()
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				start := time.Now()
				time.AfterFunc(limit/2, f.Heal) // too late for this call
				err := call(ctx, f)
				if took := time.Since(start); took != limit || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v after %v", err, took)
				}
				if err := call(t.Context(), f); err != nil {
					t.Errorf("after it healed: %v", err)
				}
			})
		})
	}
}

// A scripted fault must affect the operation that its test means, not one that a partition swallows
// anyway.
func TestPartitionKeepsScripts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faults.New(memory.New(), 1, faults.Plan{})
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

func TestPartitionHangsCallsInFlight(t *testing.T) {
	tests := []struct {
		fault   faults.Fault
		why     string
		applied bool
	}{
		{faults.DelayBefore, "the request has not arrived", false},
		{faults.DelayAfter, "the answer has not", true},
	}
	for _, tt := range tests {
		t.Run(tt.fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New()
				f := faults.New(inner, 1, fixed)
				f.Next(faults.Write, tt.fault)
				time.AfterFunc(delay/2, f.Partition)
				took, err := swap(f, "", "x")
				if _, applied := held(t, inner); applied != tt.applied || took != limit || !errors.Is(err, faults.ErrInjected) {
					t.Errorf("applied %v after %v, error %v; %s", applied, took, err, tt.why)
				}
			})
		})
	}
}
