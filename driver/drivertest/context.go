package drivertest

import (
	"context"
	"errors"
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
			v, certain = t.read(key).Version, false
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
