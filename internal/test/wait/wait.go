// Package wait bounds the waits of tests by the time limit of the test binary (go test -timeout)
// alone, so that a slow machine delays a test and does not fail it. It polls for conditions that no
// event announces.
package wait

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"
)

const (
	// unlimited is for tests without a time limit, for programs, and for virtual time.
	unlimited = time.Hour
	// reserve is the most time that is kept for reports and cleanups.
	reserve = 30 * time.Second
	// longest is the longest pause between two checks of a condition.
	longest = 50 * time.Millisecond
)

var errLimit = fmt.Errorf("the time limit of the tests (-timeout) is near: %w", context.DeadlineExceeded)

// started is a little earlier than the time from which package testing counts its limit. It is a
// time of the wall clock. A bubble of testing/synctest begins in the year 2000, so in a bubble the
// limit is far away.
var started = time.Now().Round(0)

// Left returns how long a wait that begins now may last: the time until the limit of the test
// binary, less a tenth (at most 30 s) for reports and cleanups. It is at most an hour, and exactly
// an hour in a bubble of testing/synctest and in a program that is no test.
func Left() time.Duration {
	f := flag.Lookup("test.timeout")
	if f == nil {
		return unlimited
	}
	limit, _ := f.Value.(flag.Getter).Get().(time.Duration)
	if limit <= 0 {
		return unlimited
	}
	return share(time.Until(started.Add(limit)))
}

// share returns the part of the remaining time that a wait may use.
func share(left time.Duration) time.Duration {
	return min(max(left-min(left/10, reserve), 0), unlimited)
}

// Context returns a context that ends before the cleanups of the test, or when nothing is Left. In
// a cleanup it ends after that cleanup.
func Context(t testing.TB) context.Context {
	parent := t.Context()
	if parent.Err() != nil {
		parent = context.Background()
	}
	ctx, cancel := within(parent, Left())
	t.Cleanup(cancel)
	return ctx
}

// Background returns a context that ends when nothing is Left. Unlike Context it can be passed from
// a test to its cleanups, and be used in TestMain.
func Background() (context.Context, context.CancelFunc) {
	return within(context.Background(), Left())
}

func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, errLimit)
}

// Until waits until a condition holds. It can be used in cleanups.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	Succeeds(t, what, func(context.Context) error { return holds(ok) })
}

// Succeeds tries until there is no error, and otherwise fails the test with the last one. It can be
// used in cleanups.
func Succeeds(t testing.TB, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := Background()
	defer cancel()
	if err := Poll(ctx, try); err != nil {
		t.Fatalf("not in time: %s: %v", what, err)
	}
}

// Within reports whether a condition holds before a time has passed. It checks once more at the
// end.
func Within(limit time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return Poll(ctx, func(context.Context) error { return holds(ok) }) == nil || ok()
}

func holds(ok func() bool) error {
	if !ok() {
		return errors.New("not yet")
	}
	return nil
}

// Poll tries until there is no error or the context ends, and at least once. Its error wraps the
// last error and the cause of the end of the context.
func Poll(ctx context.Context, try func(context.Context) error) error {
	for pause := time.Millisecond; ; pause = min(2*pause, longest) {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
