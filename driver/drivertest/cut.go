package drivertest

import (
	"context"
	"runtime"
	"time"

	"github.com/tenure-go/tenure/driver"
)

const (
	// given is how long the callers in an outage wait.
	given = 20 * time.Millisecond
	// lingering is how long the work that such a call has begun may outlive it.
	lingering = 10 * time.Second
)

func cutCases() []testCase {
	return []testCase{
		{"calls end with their context when the network is gone",
			"a leader steps down on time only if nothing holds it up", cutCalls},
		{"calls leave nothing behind when the network is gone",
			"work that outlives its call piles up for as long as the outage lasts", cutLeavesNothing},
	}
}

// blackhole cuts the network. Heal also waits until the store answers again.
func (t *trial) blackhole(key string) (heal func()) {
	t.Helper()
	if t.Cut == nil {
		t.Skipf("the harness cannot cut the network")
	}
	mend := t.Cut()
	return func() {
		mend()
		allow := soon
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
		ctx, cancel := context.WithTimeout(context.Background(), given)
		t.ends(ctx, c)
		cancel()
		ctx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(given, cancel)
		t.ends(ctx, c)
	}
}

// ends requires that a call whose answer cannot come ends with its context, with an error that
// leaves the outcome open.
func (t *trial) ends(ctx context.Context, c call) {
	t.Helper()
	var err error
	done := within(given+soon, func() { err = c.do(ctx) })
	switch {
	case !done:
		t.Fatalf("a %s goes on %v after its context ended", c.name, soon)
	case err == nil:
		t.Errorf("a %s succeeded without a network", c.name)
	default:
		t.open(err)
	}
}

func cutLeavesNothing(t *trial) {
	// Far more than the connections that a client may keep, each of which costs a few goroutines.
	const calls = 128
	key := t.key("cut")
	v := t.create(key, []byte("first"))
	before := runtime.NumGoroutine()
	heal := t.blackhole(key)
	together(calls, func(i int) {
		ctx, cancel := context.WithTimeout(context.Background(), given)
		defer cancel()
		c := t.calls(key, v)[i%2]
		within(soon, func() { _ = c.do(ctx) })
	})
	heal()
	few := func() bool { return runtime.NumGoroutine() < before+calls/2 }
	if !within(lingering, func() { t.eventually(few) }) {
		t.Errorf("%d goroutines before and %d after %d calls that were cut off", before, runtime.NumGoroutine(), calls)
	}
}
