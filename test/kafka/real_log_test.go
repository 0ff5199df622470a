//go:build integration

package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestRealTwoOfThreeDown: no write may succeed, and no failed write may be reported as a success.
// When the brokers are back, the cell holds the last success or one of the writes with an unknown
// outcome, for old and new readers.
func TestRealTwoOfThreeDown(t *testing.T) {
	soak(t)
	b := startReal(t)
	s := b.open(b.direct())
	v := b.create(s, "key", "first")
	leader := b.Leader(t, b.topic, 0)
	for n := 1; n <= 3; n++ {
		if n != leader {
			b.must(b.Kill(n))
		}
	}
	for i := range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := s.CompareAndSwap(ctx, "key", v, fmt.Append(nil, "open ", i))
		if cancel(); outcome(err) != "unknown" {
			t.Errorf("alone the broker answers: %v", err)
		}
	}
	b.must(b.Heal(b.context()))
	b.recovers(s, "key", v)
}

// recovers waits until swaps work again, and compares the old reader with a new one.
func (b *brokers) recovers(s *kafkalog.Store, key string, v driver.Version) {
	b.tb.Helper()
	wait.Until(b.tb, "a swap works again", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if e, err := s.Read(ctx, key); err == nil {
			v = e.Version
		}
		next, err := s.CompareAndSwap(ctx, key, v, []byte("last"))
		if err == nil {
			v = next
		}
		return err == nil
	})
	for name, s := range map[string]*kafkalog.Store{"old": s, "new": b.open(b.direct())} {
		if e := read(b.tb, s, key); e.Version != v {
			b.tb.Errorf("the %s reader sees %s in version %s, not %s", name, e.Value, e.Version, v)
		}
	}
}

// TestRealTooFewCopies: if the topic requires all three copies and one is missing, a write is
// refused and not written.
func TestRealTooFewCopies(t *testing.T) {
	soak(t)
	b := startReal(t)
	s := b.open(b.direct())
	v := b.create(s, "key", "first")
	b.alter("min.insync.replicas", "3")
	b.must(b.Stop(b.Leader(t, b.topic, 0)%3 + 1))
	wait.Until(b.tb, "a write is refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		next, err := s.CompareAndSwap(ctx, "key", v, []byte("x"))
		if err == nil {
			v = next // the copies were still complete
		}
		return err != nil && outcome(err) == "unknown"
	})
	b.alter("min.insync.replicas", "2")
	b.recovers(s, "key", v)
}

// TestRealBrokersRestart: all brokers are killed and restart with their files. Nothing is lost.
func TestRealBrokersRestart(t *testing.T) {
	soak(t)
	b := startReal(t)
	s := b.open(b.direct())
	v := b.create(s, "key", "0")
	for i := range 20 {
		v = swap(t, s, "key", v, fmt.Sprint(i+1))
	}
	for n := 1; n <= 3; n++ {
		b.must(b.Kill(n))
	}
	b.must(b.Heal(b.context()))
	eventually(t, "the log is read", shows(s, "key", func(driver.Entry) bool { return true }))
	if e := read(t, s, "key"); e.Version != v {
		t.Errorf("the cell holds %s in version %s, not %s", e.Value, e.Version, v)
	}
	b.recovers(s, "key", v)
}

// TestRealTimestamps: the timestamps that brokers or writers put into the log decide nothing.
func TestRealTimestamps(t *testing.T) {
	b := startReal(t)
	s := b.open(b.direct())
	v := create(t, s, "key", "0")
	for i, kind := range []string{"LogAppendTime", "CreateTime", "LogAppendTime"} {
		b.alter("message.timestamp.type", kind)
		v = swap(t, s, "key", v, fmt.Sprint(i+1))
		b.recovers(s, "key", v)
		v = read(t, s, "key").Version
	}
	var kinds int
	for _, r := range b.records() {
		if r.Attrs.TimestampType() == 1 {
			kinds++
		}
	}
	if kinds == 0 {
		t.Error("a topic that Open has created is not in the brokers' time")
	}
}

func TestRealRecreatedTopic(t *testing.T) {
	b := startReal(t)
	leaderOfARecreatedTopic(&b.site, func() {
		b.must(b.Complete(b.context()))
		b.DeleteTopic(t, b.topic)
		b.CreateTopic(t, b.topic, map[string]string{"retention.ms": "-1", "retention.bytes": fmt.Sprint(64 << 20)})
	})
}

func TestRealHeadOfTheLogIsRemoved(t *testing.T) {
	headOfTheLogIsRemoved(&startReal(t).site, 12_000)
}

func TestRealLogIsBounded(t *testing.T) {
	soak(t)
	logIsBounded(&startReal(t).site, 6, func() {})
}

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
	wait.Until(t, "another leader", func() bool { return b.Leader(t, b.topic, 0) != old })
	b.must(p.EndTransaction(b.context(), kgo.TryCommit))
	eventually(t, "a read", shows(s, "key", func(driver.Entry) bool { return true }))
	for range 100 {
		if _, err := s.Read(b.context(), "key"); err != nil && strings.Contains(err.Error(), "truncated") {
			t.Fatal(err)
		}
	}
}
