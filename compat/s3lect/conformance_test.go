package s3lect_test

import (
	"context"
	"testing"

	"github.com/tenure-go/tenure/compat/s3lect"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/electiontest"
)

// plain hides that a storage returns ETags.
type plain struct{ s3lect.Storage }

// operated is either kind of memory store.
type operated interface {
	driver.Store
	Delete(key string) driver.Version
	Purge(key string)
}

// over has every way of wrapping a store in this package.
var over = map[string]func(testing.TB) (operated, driver.Store){
	"storage": func(testing.TB) (operated, driver.Store) {
		s := memory.NewPolled()
		return s, s3lect.FromStorage(plain{s3lect.ToStorage(s)})
	},
	"storage that returns ETags": func(testing.TB) (operated, driver.Store) {
		s := memory.NewPolled()
		return s, s3lect.FromStorage(s3lect.ToStorage(s))
	},
	"legacy": func(t testing.TB) (operated, driver.Store) {
		s := memory.New()
		return s, mustLegacy(t, s)
	},
	"legacy, polled": func(t testing.TB) (operated, driver.Store) {
		s := memory.NewPolled()
		return s, mustLegacy(t, s)
	},
}

func mustLegacy(t testing.TB, s driver.Store) driver.Store {
	t.Helper()
	l, err := s3lect.Legacy(s, s3lect.LegacyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func harness(t testing.TB, open func(testing.TB) (operated, driver.Store)) drivertest.Harness {
	inner, s := open(t)
	return drivertest.Harness{
		Store:  s,
		Delete: func(_ context.Context, key string) error { inner.Delete(key); return nil },
		Purge:  func(_ context.Context, key string) error { inner.Purge(key); return nil },
	}
}

func TestConformance(t *testing.T) {
	for name, open := range over {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t testing.TB) drivertest.Harness { return harness(t, open) })
		})
	}
}

func TestElection(t *testing.T) {
	for name, open := range over {
		t.Run(name, func(t *testing.T) {
			electiontest.RunInBubbles(t, func(t testing.TB) drivertest.Harness { return harness(t, open) })
		})
	}
}
