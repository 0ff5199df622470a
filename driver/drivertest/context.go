package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// soon is how long a call may take after its context has ended, on a machine that does not stall.
const soon = 2 * time.Second

func contextCases() []testCase {
	return []testCase{
		{"ended context ends a read", "whoever gave up must not be kept", endedRead},
		{"ended context ends a swap honestly",
			"a swap that says conflict or success must know; one that was given up seldom does", endedSwap},
		{"deadlines do not lose acknowledged writes",
			"a leader counts a lease from every write that was acknowledged, however late", hastySwaps},
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
	if !within(soon, func() { _, _ = t.Store.Read(ended(), key) }) {
		t.Fatalf("a read whose context had ended before it began takes more than %v", soon)
	}
	t.holds(key, v, []byte("value"))
}

func endedSwap(t *trial) {
	key := t.key("ended")
	first := t.create(key, []byte("first"))
	var v driver.Version
	var err error
	if !within(soon, func() { v, err = t.Store.CompareAndSwap(ended(), key, first, []byte("second")) }) {
		t.Fatalf("a swap whose context had ended before it began takes more than %v", soon)
	}
	if err == nil {
		t.holds(key, v, []byte("second"))
		return
	}
	t.open(err)
}

// open requires an error that leaves the outcome open.
func (t *trial) open(err error) {
	t.Helper()
	if errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied) {
		t.Errorf("a swap from the current version, given up: %v; want an error that leaves the outcome open", err)
	}
}

// hastySwaps writes under deadlines from none to comfortable. As no other client writes, a version
// that was acknowledged is the current one until a later write has an open outcome.
func hastySwaps(t *trial) {
	key := t.key("hasty")
	v, certain := t.create(key, []byte("start")), true
	for i := range 2 * t.Rounds {
		next, err := t.hasty(key, v, i, time.Duration(i*i)*4*time.Microsecond)
		switch {
		case err == nil:
			v, certain = next, true
		case certain && errors.Is(err, driver.ErrConflict):
			t.Fatalf("write %d: version %q was acknowledged and is not there: %v", i, v, err)
		default:
			v, certain = t.read(key).Version, false
		}
	}
	t.settle(key, "free to write", func(e driver.Entry) bool {
		_, err := t.swap(key, e.Version, []byte("end"))
		return err == nil
	})
}

func (t *trial) hasty(key string, prev driver.Version, i int, d time.Duration) (driver.Version, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return t.Store.CompareAndSwap(ctx, key, prev, []byte{byte(i >> 8), byte(i)})
}
