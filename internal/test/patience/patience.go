// Package patience bounds the waits of tests by the time limit of the test binary alone, so that a
// slow machine delays a test and does not fail it.
package patience

import (
	"context"
	"testing"
	"time"
)

const (
	// reserve is the part of the time limit that is left for reports.
	reserve = 10 * time.Second
	// unlimited is for tests without a time limit, for benchmarks and for virtual time.
	unlimited = time.Hour
)

// Left returns how long a test may still wait for something that should happen. It is the time until
// the limit of the test binary (go test -timeout), less a reserve for reports, and at least a second.
// It returns an hour where there is no limit, in benchmarks, and in the bubbles of testing/synctest.
func Left(t testing.TB) time.Duration {
	end, limited := deadline(t)
	if !limited {
		return unlimited
	}
	left := time.Until(end)
	return max(left-min(reserve, left/10), time.Second)
}

// Context returns a context that ends with the test, or when nothing is Left.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Left(t))
	t.Cleanup(cancel)
	return ctx
}

// deadline returns none in a bubble, where testing.T refuses the question with a panic.
func deadline(t testing.TB) (end time.Time, limited bool) {
	d, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return time.Time{}, false
	}
	defer func() { _ = recover() }()
	return d.Deadline()
}
