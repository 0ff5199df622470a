//go:build integration

package kafka

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestRealEndOfATransaction: another program's transaction in the topic ends under a later
// partition leader than the one that its record was written under. So the last entry in the log is
// a marker of a later epoch. That must not look as if the log had been truncated.
func TestRealEndOfATransaction(t *testing.T) {
	soak(t)
	b := startReal(t)
	s := b.open(b.direct())
	b.create(s, "key", "first")
	b.must(b.Complete(b.context()))
	p, err := kgo.NewClient(b.direct(kgo.TransactionalID(b.topic), kgo.DefaultProduceTopic(b.topic))...)
	b.must(err)
	defer p.Close()
	b.must(p.BeginTransaction())
	b.must(p.ProduceSync(b.context(), kgo.StringRecord("somebody else's")).FirstErr())
	old := b.Leader(t, b.topic, 0)
	b.must(b.Stop(old))
	b.anotherLeader(old)
	b.must(p.EndTransaction(b.context(), kgo.TryCommit))
	wait.Until(b.tb, "a read", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := s.Read(ctx, "key")
		return err == nil
	})
	for range 100 {
		if _, err := s.Read(b.context(), "key"); err != nil && strings.Contains(err.Error(), "truncated") {
			t.Fatal(err)
		}
	}
}
