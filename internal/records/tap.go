package records

import (
	"context"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// Tap returns a store that calls see for each entry that s reads or pushes, before the election
// gets it. See must return at once, and may be called concurrently. The result has only two of the
// optional interfaces of s: driver.Bounded and driver.Watcher.
func Tap(s driver.Store, see func(key string, e driver.Entry, pushed bool)) driver.Store {
	t := &tap{s, unbounded{}, see}
	if b, ok := s.(driver.Bounded); ok {
		t.Bounded = b
	}
	if w, ok := s.(driver.Watcher); ok {
		return &watchedTap{t, w}
	}
	return t
}

type tap struct {
	driver.Store
	driver.Bounded
	see func(key string, e driver.Entry, pushed bool)
}

// unbounded is the driver.Bounded of a store that has no limits.
type unbounded struct{}

func (unbounded) MinLease() time.Duration { return time.Millisecond }
func (unbounded) CheckKey(string) error   { return nil }

// Read reads the store, and calls see.
func (t *tap) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := t.Store.Read(ctx, key)
	if err == nil {
		t.see(key, e, false)
	}
	return e, err
}

type watchedTap struct {
	*tap
	watcher driver.Watcher
}

// Watch watches the store, and calls the see of Tap first.
func (t *watchedTap) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	return t.watcher.Watch(ctx, key, func(e driver.Entry) {
		if e.Lost == nil {
			t.see(key, e, true)
		}
		see(e)
	})
}
