package drivertest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// endGrace is how long a call may still take after its context has ended, if the machine does not
// stall.
const endGrace = 2 * time.Second

func contextCases() []testCase {
	return []testCase{
		{"ended context ends a read", "a caller that has given up must not be blocked", endedRead},
		{"swap after the end of its context applies nothing",
			"a candidate that has given up must not become the leader, nor see a conflict", endedSwap},
		{"deadlines do not lose acknowledged writes",
			"a leader counts a lease from each acknowledged write, even a late one", hastySwaps},
	}
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func endedRead(t *trial) {
	key := t.key("ended")
	v := t.create(key, []byte("value"))
	if !within(endGrace, func() { _, _ = t.Store.Read(ended(), key) }) {
		t.Fatalf("a read whose context had ended before it began takes more than %v", endGrace)
	}
	t.requireValue(key, v, []byte("value"))
}

func endedSwap(t *trial) {
	key := t.key("ended")
	first := t.create(key, []byte("first"))
	var err error
	if !within(endGrace, func() { _, err = t.Store.CompareAndSwap(ended(), key, first, []byte("second")) }) {
		t.Fatalf("a swap whose context had ended before it began takes more than %v", endGrace)
	}
	if err == nil {
		t.Errorf("a swap whose context had ended before it began succeeds")
	}
	t.requireOpen(err)
	if _, err := t.swap(key, first, []byte("third")); err != nil {
		t.Errorf("a swap whose context had ended before it began was applied: the next swap fails: %v", err)
	}
}

// requireOpen requires that the error leaves the outcome open.
func (t *trial) requireOpen(err error) {
	t.Helper()
	if errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied) {
		t.Errorf("a swap from the current version, given up: %v; want an error that leaves the outcome open", err)
	}
}

// hastySwaps writes with deadlines from zero to comfortable ones. No other client writes, so an
// acknowledged version stays the current one until a later write has an unknown outcome.
func hastySwaps(t *trial) {
	key := t.key("hasty")
	v, certain := t.create(key, []byte("start")), true
	for i := range 2 * t.Rounds {
		next, err := t.swapWithin(key, v, i, time.Duration(i*i)*4*time.Microsecond)
		switch {
		case err == nil:
			v, certain = next, true
		case certain && errors.Is(err, driver.ErrConflict):
			t.Fatalf("write %d: version %q was acknowledged and is not there: %v", i, v, err)
		default:
			v, certain = t.awaitState(key, "readable", func(driver.Entry) bool { return true }).Version, false
		}
	}
	t.awaitState(key, "free to write", func(e driver.Entry) bool {
		_, err := t.swap(key, e.Version, []byte("end"))
		return err == nil
	})
}

func (t *trial) swapWithin(key string, prev driver.Version, i int, d time.Duration) (driver.Version, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return t.Store.CompareAndSwap(ctx, key, prev, []byte{byte(i >> 8), byte(i)})
}

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
