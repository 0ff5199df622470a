//go:build integration

package kafka

import (
	"testing"

	"github.com/tenure-go/tenure/driver/drivertest"
)

func BenchmarkReal(b *testing.B) {
	c := startReal(b)
	open := func(t testing.TB) drivertest.Harness {
		same := *c
		same.tb = t
		return drivertest.Harness{Store: same.open(same.direct()), Peer: same.open(same.direct())}
	}
	drivertest.Benchmark(b, open)
}

// BenchmarkRealQuantiles measures swaps by one store that has the brokers to itself.
func BenchmarkRealQuantiles(b *testing.B) {
	c := startReal(b)
	s, key := c.open(c.direct()), fresh("bench")
	swaps(b, s, key, c.create(s, key, "start"))
}
