package kafka

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
)

// BenchmarkQuantiles measures swaps by one store that has the cluster to itself.
func BenchmarkQuantiles(b *testing.B) {
	c := start(b)
	s, key := c.open(c.direct()), fresh("bench")
	swaps(b, s, key, create(b, s, key, "start"))
}

func swaps(b *testing.B, s *kafkalog.Store, key string, v driver.Version) {
	n := 0
	quantiles(b, func() {
		n++
		next, err := s.CompareAndSwap(b.Context(), key, v, fmt.Appendf(nil, "%0320d", n))
		if err != nil {
			b.Fatal(err)
		}
		v = next
	})
}

// quantiles reports the duration of do, after pauses that do not count.
func quantiles(b *testing.B, do func(), pauses ...time.Duration) {
	var took []time.Duration
	for b.Loop() {
		for _, d := range pauses {
			time.Sleep(d)
		}
		began := time.Now()
		do()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
