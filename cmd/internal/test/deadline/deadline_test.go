package deadline_test

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/test/deadline"
)

func TestWaitsEndBeforeTheTestBinaryDoes(t *testing.T) {
	limit, limited := t.Deadline()
	end, ok := deadline.Of(t)
	if ok != limited {
		t.Fatalf("limited: %v, want %v", ok, limited)
	}
	if !limited {
		t.Skip("this run has no limit")
	}
	if ctx, _ := deadline.Context(t).Deadline(); !end.Before(limit) || !ctx.Before(limit) || time.Until(end) <= 0 {
		t.Errorf("a wait ends %v, a context %v, the test binary %v", end, ctx, limit)
	}
	if !deadline.Do(t, func() { t.Error("called") })() {
		t.Error("it was over at once")
	}
}

func TestAwaitReturnsWhenItIsSo(t *testing.T) {
	calls := 0
	deadline.Await(t, func() bool { calls++; return calls == 3 }, func() string { return "it is not so" })
	if calls != 3 {
		t.Errorf("asked %d times", calls)
	}
}
