//go:build integration

package kafka

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/fenced"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// realScene is on the brokers of all tests.
func realScene(t testing.TB) scene {
	t.Helper()
	return scene{t, kafkad.Shared(t).Seeds(), fresh("written"), nil}
}

// TestRealFenced is TestFenced on real brokers, whose behavior is decisive.
func TestRealFenced(t *testing.T) {
	c := kafkad.Shared(t)
	t.Run("Scenes", func(t *testing.T) {
		for name, run := range fencedScenes() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := scene{t, c.Seeds(), fresh("written"), nil}
				c.CreateTopic(t, b.topic, nil)
				run(t, b)
			})
		}
	})
}

// TestRealFencedRights: a right to the transactional ID and one to the topic are enough.
func TestRealFencedRights(t *testing.T) {
	c := kafkad.Shared(t)
	topic := fresh("written")
	c.CreateTopic(t, topic, nil)
	c.Allow(t, kafkad.Observer, kmsg.ACLResourceTypeTransactionalId, "billing", kmsg.ACLOperationWrite)
	c.Allow(t, kafkad.Candidate, kmsg.ACLResourceTypeTransactionalId, "billing", kmsg.ACLOperationWrite)
	c.Allow(t, kafkad.Candidate, kmsg.ACLResourceTypeTopic, topic, kmsg.ACLOperationWrite)
	for _, user := range []string{kafkad.Observer, kafkad.Candidate} {
		t.Cleanup(func() { c.Revoke(t, user) })
	}
	users := map[string]string{"nobody": kafkad.Stranger, "half": kafkad.Observer, "leader": kafkad.Candidate, "intruder": "intruder"}
	fencedRights(t, scene{t, c.SASLSeeds(), topic, nil}, func(user string) kgo.Opt { return as(users[user]) })
}

// TestRealFencedOrder: with any delay, each partition holds the terms in order.
func TestRealFencedOrder(t *testing.T) {
	soak(t)
	t.Parallel()
	fencedOrder(realScene(t), 8, nil)
}

// TestRealFencedRestart: each broker in turn is stopped and restarted, while a leader writes.
func TestRealFencedRestart(t *testing.T) {
	soak(t)
	c := kafkad.Shared(t)
	b := scene{t, c.Seeds(), fresh("written"), nil}
	b.makeTopic(fencedPartitions)
	leader, l := b.contest().elect("a", time.Hour), newDiary()
	p, err := fenced.Open(within(b), leader.term, leader.options(kgo.RecordPartitioner(kgo.ManualPartitioner())))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(within(t))
	restarted := aside(func() error {
		defer stop()
		for n := range 3 {
			if err := errors.Join(c.Stop(n+1), c.Start(n+1), c.Complete(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
	longest := time.Duration(0)
	for i := 0; ctx.Err() == nil; i++ {
		value, began := leader.wrote(strconv.Itoa(i)), time.Now()
		err := p.Produce(context.Background(), toEach(value)...)
		longest = max(longest, time.Since(began))
		if l.enter(value, err); err != nil {
			t.Logf("after %v: %v", time.Since(began), err)
		}
		if err != nil && !errors.Is(err, fenced.ErrUnknown) {
			t.Errorf("a leader cannot write: %v", err)
		}
	}
	if err := <-restarted; err != nil {
		t.Error(err)
	}
	_ = p.Close()
	t.Logf("the longest of %d transactions took %v", len(l.results), longest)
	b.check(l, 1)
}

// BenchmarkRealFenced measures one leader that has three brokers to itself.
func BenchmarkRealFenced(b *testing.B) {
	s := realScene(b)
	s.makeTopic(1)
	leader := s.contest().elect("a", time.Hour)
	options := []kgo.Opt{kgo.SeedBrokers(s.seeds...), kgo.DefaultProduceTopic(s.topic)}
	b.Run("Open", func(b *testing.B) {
		quantiles(b, func() {
			p, err := fenced.Open(b.Context(), leader.term, options)
			if err != nil {
				b.Fatal(err)
			}
			_ = p.Close()
		})
	})
	for _, pause := range []time.Duration{0, 50 * time.Millisecond} {
		b.Run("Produce/"+pause.String(), func(b *testing.B) {
			p := leader.open()
			quantiles(b, func() {
				s.produce(p, "x")
			}, pause)
		})
	}
}

// TestRealStaleInit: a client's outdated request does not invalidate a later one.
func TestRealStaleInit(t *testing.T) {
	if err := realScene(t).staleInit(); !errors.Is(err, kerr.ProducerFenced) {
		t.Errorf("with an outdated epoch: %v", err)
	}
}
