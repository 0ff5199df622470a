package electiontest

import (
	"slices"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/internal/test/kit"
)

// easy is a lease that never expires in a benchmark.
const easy = 2 * time.Second

// Benchmark measures elections over the store: how long it takes to acquire and release, to hand
// over, and to replace a leader that went silent. Each part is a sub-benchmark with a harness of
// its own from open.
func Benchmark(b *testing.B, open func(t testing.TB) drivertest.Harness) {
	for _, part := range []struct {
		name string
		run  func(*testing.B, *trial)
	}{
		{"AcquireRelease", benchmarkAcquireRelease},
		{"HandOver", benchmarkHandOver("")},
		{"HandOverToNamed", benchmarkHandOver("b")},
		{"CrashFailover", benchmarkCrashFailover},
	} {
		b.Run(part.name, func(b *testing.B) {
			t := newTrial(b, open(b), kit.RealTime(b))
			b.ReportAllocs()
			part.run(b, t)
		})
	}
}

// benchmarkAcquireRelease has one candidate, which names itself its successor: a released term is
// otherwise left to the others for a head start.
func benchmarkAcquireRelease(b *testing.B, t *trial) {
	c := newContest(t, t.leaseOf(easy))
	defer c.close()
	e := c.candidate("a", c.Store)
	round := func() {
		term := c.elect(e)
		if err := e.HandOver(c.ctx, e.ID()); err != nil {
			b.Fatal(err)
		}
		c.resign(term)
	}
	round() // where absence must be waited out, it is now
	for b.Loop() {
		round()
	}
}

// benchmarkHandOver measures from the call of Resign to the successor's term. If to is empty any
// candidate may succeed, which includes that a crowd of followers does not claim at one instant.
func benchmarkHandOver(to string) func(*testing.B, *trial) {
	return func(b *testing.B, t *trial) {
		c := newContest(t, t.leaseOf(easy))
		defer c.close()
		// the follower is always b
		leader, follower := c.candidate("b", c.Store), c.candidate("b", c.other())
		c.observe(leader)
		c.observe(follower)
		term := c.elect(leader)
		var took []time.Duration
		for b.Loop() {
			b.StopTimer()
			won := c.campaign(follower)
			c.sees(follower, term)
			if to != "" {
				if err := leader.HandOver(c.ctx, to); err != nil {
					b.Fatal(err)
				}
			}
			b.StartTimer()
			began := time.Now()
			c.all.Go(func() { c.resign(term) })
			next := c.elected(follower, won)
			took = append(took, time.Since(began))
			b.StopTimer()
			_ = term.Resign(c.ctx) // waits for the one above
			b.StartTimer()
			term, leader, follower = next, follower, leader
		}
		slices.Sort(took)
		b.ReportMetric(millis(quantile(took, 0.50)), "p50-ms")
		b.ReportMetric(millis(quantile(took, 0.99)), "p99-ms")
	}
}

// benchmarkCrashFailover measures from the end of a silent leader's lease, which is the earliest
// that is safe, to its successor's term. An operation takes a lease more.
func benchmarkCrashFailover(b *testing.B, t *trial) {
	c := newContest(t, t.shortest())
	defer c.close()
	survivor := c.candidate("b", c.other())
	c.observe(survivor)
	var late []time.Duration
	for b.Loop() {
		late = append(late, c.crash(survivor))
	}
	slices.Sort(late)
	b.ReportMetric(millis(quantile(late, 0.50)), "ms-after-lease-end")
}

// shortest is the shortest lease that the store is for.
func (t *trial) shortest() time.Duration {
	if d := t.leaseOf(0); d > 0 {
		return d
	}
	return 500 * time.Millisecond
}

// quantile is of sorted values, at least one.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
