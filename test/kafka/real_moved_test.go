//go:build integration

package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestRealNextLeader measures how soon a store writes to a new leader of the partition. The callers
// of the store each have three seconds.
func TestRealNextLeader(t *testing.T) {
	soak(t)
	for name, end := range map[string]func(b *brokers, n int) error{
		"killed": func(b *brokers, n int) error { return b.Kill(n) },
		"frozen": func(b *brokers, n int) error { return b.Pause(n) },
		"ended":  func(b *brokers, n int) error { return b.Stop(n) },
	} {
		t.Run(name, func(t *testing.T) {
			b := startReal(t)
			// The store must not spend this time on a silent broker.
			s := b.open(b.direct(), kafkalog.WithTimeout(30*time.Second))
			v := b.create(s, "key", "first")
			b.must(b.Complete(b.context()))
			old := b.Leader(t, b.topic, 0)
			moved := make(chan time.Time, 1)
			b.must(end(b, old))
			began := time.Now()
			go func() {
				for t.Context().Err() == nil && b.Leader(t, b.topic, 0) == old {
					pause(t.Context(), 20*time.Millisecond)
				}
				moved <- time.Now()
			}()
			wait.Until(b.tb, "a write", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				_, err := s.CompareAndSwap(ctx, "key", v, []byte("second"))
				cancel()
				pause(t.Context(), 100*time.Millisecond)
				return outcome(err) != "unknown" // a conflict is a late earlier attempt
			})
			written := time.Now()
			late := written.Sub(<-moved)
			t.Logf("%s: a write after %v, %v after the partition moved", name, written.Sub(began), late)
		})
	}
}
