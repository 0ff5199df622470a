//go:build integration

package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestRealConformance runs alone, because it counts goroutines.
func TestRealConformance(t *testing.T) {
	b := startReal(t)
	drivertest.Run(t, b.harness)
}

func TestRealElections(t *testing.T) {
	b := startReal(t)
	electiontest.Run(t, b.allowed)
}

func BenchmarkReal(b *testing.B) {
	c := startReal(b)
	open := func(t testing.TB) drivertest.Harness {
		same := *c
		same.tb = t
		return drivertest.Harness{Store: same.open(same.direct()), Peer: same.open(same.direct())}
	}
	drivertest.Benchmark(b, open)
	electiontest.Benchmark(b, open)
}

// BenchmarkRealQuantiles measures swaps by one store that has the brokers to itself.
func BenchmarkRealQuantiles(b *testing.B) {
	c := startReal(b)
	s, key := c.open(c.direct()), fresh("bench")
	swaps(b, s, key, c.create(s, key, "start"))
}

// harness lets the denied user lose its rights once the harness exists. The user is the same in all
// harnesses, which are created one after another.
func (b *brokers) harness(t testing.TB) drivertest.Harness {
	h := b.allowed(t)
	c := *b
	c.tb = t
	c.Allow(t, kafkad.Stranger, kmsg.ACLResourceTypeTopic, c.topic, kmsg.ACLOperationRead, kmsg.ACLOperationWrite)
	h.Denied = c.open(c.as(kafkad.Stranger))
	c.Revoke(t, kafkad.Stranger)
	return h
}

// allowed has no denied user.
func (b *brokers) allowed(t testing.TB) drivertest.Harness {
	c := *b
	c.tb = t
	cut, relays := c.overRelays()
	peer := c.open(c.direct())
	return drivertest.Harness{
		Patience: 5 * time.Minute, Lease: 10 * time.Second,
		Store:  c.open(cut),
		Peer:   peer,
		Delete: func(ctx context.Context, key string) error { return remove(ctx, peer, key) },
		Cut: func() func() {
			for _, r := range relays {
				r.Blackhole()
			}
			return func() {
				for _, r := range relays {
					r.Heal()
				}
			}
		},
	}
}
