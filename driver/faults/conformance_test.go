package faults_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/able"
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

// An election over a wrapped store keeps to the limits of the store inside.
func TestElectionKnowsTheLimits(t *testing.T) {
	f := faults.New(able.Store{Store: memory.New()}, 1, faults.Plan{})
	for lease, refused := range map[time.Duration]bool{6 * time.Second: true, 8 * time.Second: false, 10 * time.Second: true} {
		_, err := tenure.New(f, "k", tenure.Config{Lease: lease})
		if err == nil || !strings.Contains(err.Error(), "no key") || strings.Contains(err.Error(), "Lease is") != refused {
			t.Errorf("lease %v: %v", lease, err)
		}
	}
}
