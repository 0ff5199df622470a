// Package deadline bounds the waits of tests by the time limit of the test binary and by nothing else, so that no machine is
// too slow for them. A part of that time is kept, in which a test can still say what it waited for.
package deadline

import (
	"context"
	"testing"
	"time"
)

// Of returns when a wait ends that begins now, which is a tenth of the time left before the test binary's limit. It returns
// false if there is no limit.
func Of(t *testing.T) (end time.Time, limited bool) {
	t.Helper()
	end, limited = t.Deadline()
	if !limited {
		return time.Time{}, false
	}
	return end.Add(-time.Until(end) / 10), true
}

// Context ends with the test, or at its deadline.
func Context(t *testing.T) context.Context {
	t.Helper()
	end, limited := Of(t)
	if !limited {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), end)
	t.Cleanup(cancel)
	return ctx
}

// Over receives at the deadline. Unlike that of Context the wait goes on while the test cleans up.
func Over(t *testing.T) <-chan time.Time {
	t.Helper()
	end, limited := Of(t)
	if !limited {
		return nil
	}
	return time.After(time.Until(end))
}

// Do calls f at the deadline, unless stop is called before. Stop reports whether it was.
func Do(t *testing.T, f func()) (stop func() bool) {
	t.Helper()
	end, limited := Of(t)
	if !limited {
		return func() bool { return true }
	}
	return time.AfterFunc(time.Until(end), f).Stop
}

// Await polls until something is so. At the deadline it fails the test with what is instead.
func Await(t *testing.T, is func() bool, instead func() string) {
	t.Helper()
	for over := Over(t); !is(); {
		select {
		case <-over:
			t.Fatal(instead())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
