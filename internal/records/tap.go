package records

import (
	"context"

	"github.com/tenure-go/tenure/driver"
)

// Tap returns a store that calls see for each entry that s reads or pushes, before the election
// gets it. See must return at once, and may be called concurrently. The result has the abilities of
// s, except for driver.LeaseLimiter: it is for observers, whose lease no record has.
func Tap(s driver.Store, see func(key string, e driver.Entry, pushed bool)) driver.Store {
	return &tap{s, see}
}

type tap struct {
	driver.Store
	see func(key string, e driver.Entry, pushed bool)
}

// Abilities returns those of the store. Its pushes pass through the tap.
func (t *tap) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(t.Store)
	a.LeaseLimiter = nil
	if a.Watcher != nil {
		a.Watcher = tappedWatcher{a.Watcher, t.see}
	}
	return a
}

// Read reads the store, and calls see.
func (t *tap) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := t.Store.Read(ctx, key)
	if err == nil {
		t.see(key, e, false)
	}
	return e, err
}

type tappedWatcher struct {
	inner driver.Watcher
	see   func(key string, e driver.Entry, pushed bool)
}

// Watch watches the store, and calls the see of Tap first.
func (t tappedWatcher) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	return t.inner.Watch(ctx, key, func(e driver.Entry) {
		if e.Lost == nil {
			t.see(key, e, true)
		}
		see(e)
	})
}
