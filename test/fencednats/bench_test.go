//go:build integration

package fencednats

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/test/internal/natsd"
)

// BenchmarkCluster compares publishing to a replicated stream with and without the fence, one
// message after another and eight at a time.
func BenchmarkCluster(b *testing.B) {
	s := onThree(b, natsd.StartCluster)
	leader := s.elect("a", s.js)
	p := leader.open()
	publish := map[string]func() error{
		"plain": func() error { return leader.unfenced(b.Context(), "a message of some thirty bytes..") },
		"fenced": func() error {
			_, err := p.Publish(b.Context(), s.message("a message of some thirty bytes.."))
			return err
		},
	}
	for _, name := range []string{"plain", "fenced"} {
		b.Run(name, func(b *testing.B) { measure(b, 1, publish[name]) })
		b.Run(name+"-by-eight", func(b *testing.B) { measure(b, 8, publish[name]) })
	}
}

// measure reports quantiles of the time of one call.
func measure(b *testing.B, at int, do func() error) {
	var mu sync.Mutex
	var took []time.Duration
	left := make(chan struct{}, 1000)
	var all sync.WaitGroup
	for range at {
		all.Go(func() {
			for range left {
				began := time.Now()
				if err := do(); err != nil {
					b.Error(err)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	for b.Loop() {
		left <- struct{}{}
	}
	close(left)
	all.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
