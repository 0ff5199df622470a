//go:build integration

package fenced_test

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkPublish compares publishing one message after another with and without the fence, on one
// server.
func BenchmarkPublish(b *testing.B) {
	s := newScene(b)
	leader := s.elect("a")
	p := leader.open()
	m := message("a message of some thirty bytes..")
	b.Run("plain", func(b *testing.B) {
		median(b, func() error {
			_, err := s.js.PublishMsg(b.Context(), m)
			return err
		})
	})
	b.Run("fenced", func(b *testing.B) {
		median(b, func() error {
			_, err := p.Publish(b.Context(), m)
			return err
		})
	})
}

func median(b *testing.B, do func() error) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		must(b, do())
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
