package abandon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errBroken = errors.New("broken")

// TestRun: a call that hangs delays no caller beyond its context. Its later result is undone.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Calls
		release := make(chan error)
		hang := func() (int, error) { return 7, <-release }
		var undone []int
		undo := func(v int) { undone = append(undone, v) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := Run(ctx, &c, hang, undo); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that hangs: %v; want the context's error", err)
		}
		if d := time.Since(start); d != time.Second || c.abandoned.Load() != 1 {
			t.Errorf("left after %v with %d abandoned; want 1 s and 1", d, c.abandoned.Load())
		}
		release <- nil
		synctest.Wait()
		if len(undone) != 1 || undone[0] != 7 || c.abandoned.Load() != 0 {
			t.Errorf("undone %d, %d abandoned; want 7 and none", undone, c.abandoned.Load())
		}

		called := false
		_, err := Run(ctx, &c, func() (int, error) { called = true; return 0, nil }, undo)
		if !errors.Is(err, context.DeadlineExceeded) || called {
			t.Errorf("a call after the end of its context: %v, called %v", err, called)
		}
		if v, err := Run(t.Context(), &c, func() (int, error) { return 8, errBroken }, undo); v != 8 || !errors.Is(err, errBroken) {
			t.Errorf("a call that fails: %d, %v", v, err)
		}
	})
}

// TestRunIsBounded: an outage must not accumulate goroutines without limit.
func TestRunIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Calls
		release := make(chan struct{})
		hang := func() (int, error) { <-release; return 1, nil }
		leave := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, err := Run(ctx, &c, hang, NoUndo)
			return err
		}
		for range MaxAbandoned {
			if err := leave(); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if err := leave(); !errors.Is(err, ErrStuck) {
			t.Errorf("one more: %v; want an error that too many hang", err)
		}
		close(release)
		synctest.Wait()
		if v, err := Run(t.Context(), &c, hang, NoUndo); v != 1 || err != nil {
			t.Errorf("after all have ended: %d, %v", v, err)
		}
	})
}
