// Package limit bounds what tests wait for by the time limit of the test binary (-timeout), so that
// only a hang fails them and never a slow machine.
package limit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"
)

// started is a little earlier than the time from which package testing counts its limit.
var started = time.Now()

// reserve is how much of the time limit is left for reports and for stopping servers.
func reserve(limit time.Duration) time.Duration { return min(limit/10, 30*time.Second) }

// Deadline returns the time until which a test may wait, and false if there is no limit.
func Deadline() (time.Time, bool) {
	f := flag.Lookup("test.timeout")
	if f == nil { // not a test
		return time.Time{}, false
	}
	limit, _ := f.Value.(flag.Getter).Get().(time.Duration)
	if limit <= 0 {
		return time.Time{}, false
	}
	return started.Add(limit - reserve(limit)), true
}

// Left returns how long a test may still wait: an hour if there is no limit.
func Left() time.Duration {
	end, ok := Deadline()
	if !ok {
		return time.Hour
	}
	return max(time.Until(end), 0)
}

// New returns a context that ends when tests may wait no longer. Unlike t.Context it outlives the
// test, so that cleanups can use it.
func New() (context.Context, context.CancelFunc) {
	end, ok := Deadline()
	if !ok {
		return context.WithCancel(context.Background())
	}
	return context.WithDeadlineCause(context.Background(), end,
		fmt.Errorf("the time limit of the tests (-timeout) has come: %w", context.DeadlineExceeded))
}

// Context is New for the length of a test and its cleanups.
func Context(t testing.TB) context.Context {
	ctx, cancel := New()
	t.Cleanup(cancel)
	return ctx
}

// pause is the time between two looks at a condition.
const pause = 5 * time.Millisecond

// Until waits until a condition holds that no event announces.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	Works(t, what, func() error {
		if !ok() {
			return errors.New("not yet")
		}
		return nil
	})
}

// Works tries until there is no error.
func Works(t testing.TB, what string, try func() error) {
	t.Helper()
	ctx, cancel := New()
	defer cancel()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			t.Fatalf("%s: %v: %v", what, err, context.Cause(ctx))
		}
	}
}
