package records

import (
	"context"

	"github.com/tenure-go/tenure/driver"
)

// Tap returns the store, with see called for each entry that an election sees there, by reading or
// by a push, before the election does. See must return at once, and may be called concurrently. The
// store must be a driver.Bounded, as all are that the command opens.
func Tap(s driver.Store, see func(driver.Entry)) driver.Store {
	t := &tap{s, s.(driver.Bounded), see}
	if w, ok := s.(driver.Watcher); ok {
		return &watchedTap{t, w}
	}
	return t
}

type tap struct {
	driver.Store
	driver.Bounded
	see func(driver.Entry)
}

// Read is the store's.
func (t *tap) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := t.Store.Read(ctx, key)
	if err == nil {
		t.see(e)
	}
	return e, err
}

type watchedTap struct {
	*tap
	watcher driver.Watcher
}

// Watch is the store's.
func (t *watchedTap) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	return t.watcher.Watch(ctx, key, func(e driver.Entry) {
		t.see(e)
		see(e)
	})
}
