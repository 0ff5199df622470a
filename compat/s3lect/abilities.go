package s3lect

import (
	"context"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// assemble gives the decorator those optional methods that only some stores have. Callers find them
// by type assertion, so each combination is a type of its own.
func assemble(l *legacy) driver.Store {
	w, watches := l.inner.(driver.Watcher)
	i, identifies := l.inner.(driver.Identifier)
	watch := &legacyWatcher{l, w}
	switch {
	case watches && identifies:
		return struct {
			*legacyWatcher
			driver.Identifier
		}{watch, i}
	case watches:
		return watch
	case identifies:
		return struct {
			*legacy
			driver.Identifier
		}{l, i}
	}
	return l
}

type legacyWatcher struct {
	*legacy
	inner driver.Watcher
}

func (l *legacyWatcher) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	return l.inner.Watch(ctx, key, func(e driver.Entry) { see(l.translate(e)) })
}

// PeerPushed marks that pushes may not reach every member: S3lect processes do not receive them.
func (*legacyWatcher) PeerPushed() {}

// MinLease returns the MinLease of the inner store, or 1 ms if it has none.
func (l *legacy) MinLease() time.Duration { return minLeaseOf(l.inner) }

// CheckKey calls the CheckKey of the inner store, if it has one.
func (l *legacy) CheckKey(key string) error { return checkKeyOf(l.inner, key) }

// Inspect adds a finding that legacy mode is on, since it should end.
func (l *legacy) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	findings, err := inspect(ctx, l.inner, lease)
	if err != nil {
		return nil, err
	}
	return append(findings, driver.Finding{
		Severity: driver.Warning,
		Setting:  "legacy",
		Problem:  "while an S3lect process takes part, there can be two leaders if clocks are further apart than " + l.format.skew.String(),
		Remedy:   "leave out s3lect.Legacy once the last S3lect process is gone",
	}), nil
}

func minLeaseOf(s driver.Store) time.Duration {
	if b, ok := s.(driver.Bounded); ok {
		return b.MinLease()
	}
	return time.Millisecond
}

func checkKeyOf(s driver.Store, key string) error {
	if b, ok := s.(driver.Bounded); ok {
		return b.CheckKey(key)
	}
	return nil
}

// CheckRights calls the CheckRights of the inner store, if it has one.
func (l *legacy) CheckRights(ctx context.Context, key string) error {
	return checkRightsOf(ctx, l.inner, key)
}

func checkRightsOf(ctx context.Context, s driver.Store, key string) error {
	if r, ok := s.(driver.RightsChecker); ok {
		return r.CheckRights(ctx, key)
	}
	return nil
}

func inspect(ctx context.Context, s driver.Store, lease time.Duration) ([]driver.Finding, error) {
	if i, ok := s.(driver.Inspector); ok {
		return i.Inspect(ctx, lease)
	}
	return nil, ctx.Err()
}
