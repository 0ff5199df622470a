package faults_test

import (
	"context"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

type operated interface {
	driver.Store
	Delete(key string) driver.Version
	Purge(key string)
}

// harness wraps a store without faults. It gives the kit a partition and a client without rights.
func harness(inner operated) drivertest.Harness {
	f := faults.New(inner, 1, faults.Plan{})
	return drivertest.Harness{
		Store:  f,
		Peer:   faults.New(inner, 2, faults.Plan{}),
		Denied: faults.New(inner, 3, faults.Plan{Chances: faults.Chances{faults.Deny: 1}}),
		Delete: func(_ context.Context, key string) error { inner.Delete(key); return nil },
		Purge:  func(_ context.Context, key string) error { inner.Purge(key); return nil },
		Cut: func() func() {
			f.Partition()
			return f.Heal
		},
	}
}

func TestConformance(t *testing.T) {
	drivertest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.New()) })
}

func TestConformancePolled(t *testing.T) {
	drivertest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.NewPolled()) })
}
