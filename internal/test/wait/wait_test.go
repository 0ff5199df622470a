package wait

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestShare(t *testing.T) {
	for _, c := range []struct {
		why        string
		left, want time.Duration
	}{
		{"most of a long time is for waiting", 10 * time.Minute, 10*time.Minute - reserve},
		{"a short one leaves less for reports", 10 * time.Second, 9 * time.Second},
		{"nothing is left", -time.Second, 0},
		{"in the year 2000", 26 * 365 * 24 * time.Hour, unlimited},
	} {
		if got := share(c.left); got != c.want {
			t.Errorf("%v of %v: want %v: %s", got, c.left, c.want, c.why)
		}
	}
}

// TestWaitsEndBeforeTheBinary: package testing ends the process at its own deadline.
func TestWaitsEndBeforeTheBinary(t *testing.T) {
	deadline, limited := t.Deadline()
	if !limited {
		t.Skip("this run has no limit")
	}
	ctx, cancel := Background()
	defer cancel()
	for _, ctx := range []context.Context{ctx, Context(t)} {
		if end, ok := ctx.Deadline(); !ok || !end.Before(deadline) || !end.After(time.Now()) {
			t.Errorf("a wait ends at %v, the process at %v", end, deadline)
		}
	}
}

func TestVirtualTimeHasNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := Context(t)
		time.Sleep(unlimited - time.Nanosecond)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("it ends early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if err := context.Cause(ctx); !errors.Is(err, errLimit) {
			t.Errorf("it ends with %v", err)
		}
	})
}

func TestContextEndsBeforeCleanups(t *testing.T) {
	var during, cleanup context.Context
	t.Run("test", func(t *testing.T) {
		t.Cleanup(func() {
			if during.Err() == nil {
				t.Error("it goes on in cleanups")
			}
			if cleanup = Context(t); cleanup.Err() != nil {
				t.Error("a cleanup cannot wait")
			}
		})
		during = Context(t)
	})
	if cleanup.Err() == nil {
		t.Error("it goes on after cleanups")
	}
}

func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun, last := time.Now(), time.Now()
		reached := func(after time.Duration) func(context.Context) error {
			return func(context.Context) error {
				if since := time.Since(last); since > longest {
					t.Errorf("it looks away for %v", since)
				}
				last = time.Now()
				if passed := time.Since(begun); passed < after {
					return fmt.Errorf("only %v", passed)
				}
				return nil
			}
		}
		if err := Poll(ctx, reached(30*time.Second)); err != nil {
			t.Error(err)
		}
		err := Poll(ctx, reached(61*time.Second))
		if passed := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || passed != time.Minute {
			t.Errorf("%v after %v", err, passed)
		}
		calls := 0
		if err := Poll(ctx, func(context.Context) error { calls++; return nil }); err != nil || calls != 1 {
			t.Errorf("%v after %d calls, though the first succeeds", err, calls)
		}
	})
}

func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		after := func(d time.Duration) func() bool { return func() bool { return time.Since(begun) >= d } }
		if !Within(time.Second, after(900*time.Millisecond)) {
			t.Error("a condition is not seen")
		}
		begun = time.Now()
		if !Within(time.Second, after(time.Second)) || Within(time.Second, after(time.Hour)) {
			t.Error("a condition is seen that does not hold, or not that it holds at the end")
		}
	})
}

// fataler is a test that records its failure.
type fataler struct {
	testing.TB
	said string
}

func (f *fataler) Fatalf(format string, args ...any) { f.said = fmt.Sprintf(format, args...) }

func TestSucceedsReportsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fataler{TB: t}
		Succeeds(f, "an answer", func(context.Context) error { return errors.New("no server") })
		want := "not in time: an answer: " + errLimit.Error() + ": no server"
		if f.said != want {
			t.Errorf("it says %q, want %q", f.said, want)
		}
	})
}
