package drivertest

import (
	"context"
	"runtime"
	"time"

	"github.com/tenure-go/tenure/driver"
)

const (
	// callTimeout is the time limit of a call during the outage.
	callTimeout = 20 * time.Millisecond
	// cleanupTime is how much longer than the call its background work may take.
	cleanupTime = 10 * time.Second
)

func cutCases() []testCase {
	return []testCase{
		{"calls end with their context when the network is gone",
			"a leader steps down on time only if no call blocks it", cutCalls},
		{"calls leave nothing behind when the network is gone",
			"work that outlives its call accumulates during an outage", cutLeavesNothing},
	}
}

// blackhole cuts the network. The function heal also waits until the store answers again.
func (t *trial) blackhole(key string) (heal func()) {
	t.Helper()
	if t.Cut == nil {
		t.Skipf("the harness cannot cut the network")
	}
	healCut := t.Cut()
	return func() {
		healCut()
		allow := endGrace
		if !t.eventually(func() bool { allow = min(2*allow, time.Minute); return t.reachable(key, allow) }) {
			t.Errorf("the store does not answer after the network is back")
		}
	}
}

func (t *trial) reachable(key string, allow time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), allow)
	defer cancel()
	_, err := t.Store.Read(ctx, key)
	return err == nil
}

// call is a Read or a CompareAndSwap.
type call struct {
	name string
	do   func(ctx context.Context) error
}

func (t *trial) calls(key string, v driver.Version) []call {
	return []call{
		{"read", func(ctx context.Context) error {
			_, err := t.Store.Read(ctx, key)
			return err
		}},
		{"swap", func(ctx context.Context) error {
			_, err := t.Store.CompareAndSwap(ctx, key, v, []byte("lost"))
			return err
		}},
	}
}

func cutCalls(t *trial) {
	key := t.key("cut")
	v := t.create(key, []byte("first"))
	defer t.blackhole(key)()
	for _, c := range t.calls(key, v) {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		t.requireEnd(ctx, c)
		cancel()
		ctx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(callTimeout, cancel)
		t.requireEnd(ctx, c)
	}
}

// requireEnd requires that a call without a network ends with its context, with an error that
// leaves the outcome open.
func (t *trial) requireEnd(ctx context.Context, c call) {
	t.Helper()
	var err error
	done := within(callTimeout+endGrace, func() { err = c.do(ctx) })
	switch {
	case !done:
		t.Fatalf("a %s goes on %v after its context ended", c.name, endGrace)
	case err == nil:
		t.Errorf("a %s succeeded without a network", c.name)
	default:
		t.requireOpen(err)
	}
}

func cutLeavesNothing(t *trial) {
	// Many more than the connections that a client may keep, since each connection needs a few
	// goroutines.
	const calls = 128
	key := t.key("cut")
	v := t.create(key, []byte("first"))
	before := runtime.NumGoroutine()
	heal := t.blackhole(key)
	together(calls, func(i int) {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		c := t.calls(key, v)[i%2]
		within(endGrace, func() { _ = c.do(ctx) })
	})
	heal()
	few := func() bool { return runtime.NumGoroutine() < before+calls/2 }
	if !within(cleanupTime, func() { t.eventually(few) }) {
		t.Errorf("%d goroutines before and %d after %d calls that were cut off", before, runtime.NumGoroutine(), calls)
	}
}
