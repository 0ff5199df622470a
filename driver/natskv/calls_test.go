package natskv

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
)

// TestRun: a call that hangs holds nobody up beyond the context, and what it makes later is undone.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		release := make(chan error)
		hang := func() (int, error) { return 7, <-release }
		var undone []int
		undo := func(v int) { undone = append(undone, v) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := run(ctx, &c, hang, undo); !errors.Is(err, context.DeadlineExceeded) {
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
		_, err := run(ctx, &c, func() (int, error) { called = true; return 0, nil }, undo)
		if !errors.Is(err, context.DeadlineExceeded) || called {
			t.Errorf("a call after the end of its context: %v, called %v", err, called)
		}
		if v, err := run(t.Context(), &c, func() (int, error) { return 8, errFake }, undo); v != 8 || !errors.Is(err, errFake) {
			t.Errorf("a call that fails: %d, %v", v, err)
		}
	})
}

// TestRunIsBounded: an outage must not pile up goroutines without end.
func TestRunIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		release := make(chan struct{})
		hang := func() (int, error) { <-release; return 1, nil }
		leave := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, err := run(ctx, &c, hang, forget)
			return err
		}
		for range maxAbandoned {
			if err := leave(); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if err := leave(); !errors.Is(err, errStuck) {
			t.Errorf("one more: %v; want to hear that too many hang", err)
		}
		close(release)
		synctest.Wait()
		if v, err := run(t.Context(), &c, hang, forget); v != 1 || err != nil {
			t.Errorf("after all have ended: %d, %v", v, err)
		}
	})
}

// TestFrozenServer: a server that is stopped still accepts connections, in its kernel. The library then holds its lock
// until its own timeout.
func TestFrozenServer(t *testing.T) {
	server := startProcess(t)
	operator := connect(t, server.url())
	js := newJetStream(t, operator)
	kv := addBucket(t, js)
	p := startProxy(t, server.url())
	nc := connect(t, p.url(), nats.Timeout(3*time.Second))
	for name, s := range map[string]driver.Store{
		"store":         openStore(t, newJetStream(t, nc), kv.Bucket()),
		"handle":        handled(t, nc, kv.Bucket()),
		"legacy handle": handledLegacy(t, nc, kv.Bucket()),
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			heal := p.cut()
			p.drop() // so that the library connects again and waits for the server's first word
			eventually(t, "the library is at it", func() bool { return p.accepted() > 0 })
			for what, call := range map[string]func(context.Context) error{
				"read": func(ctx context.Context) error {
					_, err := s.Read(ctx, testKey)
					return err
				},
				"swap": func(ctx context.Context) error {
					_, err := s.CompareAndSwap(ctx, testKey, "1", []byte("v"))
					return err
				},
				"watch": func(ctx context.Context) error {
					_, err := s.(driver.Watcher).Watch(ctx, testKey, func(driver.Entry) {})
					return err
				},
				"inspect": func(ctx context.Context) error {
					_, err := s.(driver.Inspector).Inspect(ctx, time.Second)
					return err
				},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				start := time.Now()
				if err := call(ctx); outcomeOf(err) != open {
					t.Errorf("%s: %v; want an error that leaves it open", what, err)
				}
				if d := time.Since(start); d > 500*time.Millisecond {
					t.Errorf("%s took %v; its context ended after 50 ms", what, d)
				}
				cancel()
			}
			heal()
			eventually(t, "the store is reached again", func() bool { return readable(s) })
			eventually(t, "what was abandoned has ended", func() bool { return runtime.NumGoroutine() <= before+4 })
		})
	}
}
