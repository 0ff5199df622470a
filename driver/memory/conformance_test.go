package memory_test

import (
	"context"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/electiontest"
)

// operated is either kind of store, with the methods of an operator.
type operated interface {
	driver.Store
	Delete(key string) driver.Version
	Purge(key string)
	Recreate()
}

func harness(s operated) drivertest.Harness {
	return drivertest.Harness{
		Store:  s,
		Delete: func(_ context.Context, key string) error { s.Delete(key); return nil },
		Purge:  func(_ context.Context, key string) error { s.Purge(key); return nil },

		Recreate: func(context.Context) error { s.Recreate(); return nil },
	}
}

func TestConformance(t *testing.T) {
	drivertest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.New()) })
}

func TestConformancePolled(t *testing.T) {
	drivertest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.NewPolled()) })
}

func TestElection(t *testing.T) {
	electiontest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.New()) })
}

func TestElectionPolled(t *testing.T) {
	electiontest.RunInBubbles(t, func(testing.TB) drivertest.Harness { return harness(memory.NewPolled()) })
}

func BenchmarkStore(b *testing.B) {
	open := func(testing.TB) drivertest.Harness { return harness(memory.New()) }
	drivertest.Benchmark(b, open)
	electiontest.Benchmark(b, open)
}
