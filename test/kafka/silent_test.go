package kafka

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog"
)

// TestSilentBroker: the partition's leader becomes silent and another broker takes over. Callers
// with less time than the store's timeout find the new leader, long before the connections to the
// old one time out, which takes at least 30 s.
func TestSilentBroker(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster) {
		relays := c.relays()
		s := c.open(c.through(relays), kafkalog.WithTimeout(time.Minute))
		v := create(t, s, "key", "first")
		leader := c.LeaderFor(topic, 0)
		relays[leader].Blackhole()
		if err := c.MoveTopicPartition(topic, 0, (leader+1)%3); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		c.insist(s, "key", v, 600*time.Millisecond)
		took := time.Since(began)
		t.Logf("it takes %v", took)
		if took > 15*time.Second {
			t.Error("that is too long")
		}
	})
}

// TestSilentBrokerForReaders is the same for clients that only read.
func TestSilentBrokerForReaders(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster) {
		relays := c.relays()
		s := c.open(c.through(relays), kafkalog.WithTimeout(time.Minute))
		v := create(t, s, "key", "first")
		c.vouch()
		leader := c.LeaderFor(topic, 0)
		relays[leader].Blackhole()
		if err := c.MoveTopicPartition(topic, 0, (leader+1)%3); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		eventually(t, "a read", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
			defer cancel()
			e, err := s.Read(ctx, "key")
			return err == nil && e.Version == v
		})
		took := time.Since(began)
		t.Logf("it takes %v", took)
		if took > 15*time.Second {
			t.Error("that is too long")
		}
	})
}

// TestSlowLeader: a leader that is slower than the time limit of many callers is doubted all the
// time. The store still reads from it, and sees a write by a caller with enough time.
func TestSlowLeader(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		r := c.relay()
		s := c.open(c.over(r), kafkalog.WithTimeout(time.Minute))
		v := create(t, s, "key", "first")
		r.Delay(200 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		var hasty sync.WaitGroup
		defer hasty.Wait()
		defer cancel()
		for range 20 {
			hasty.Go(func() {
				for ctx.Err() == nil {
					short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
					_, _ = s.Read(short, "key")
					cancel()
					pause(ctx, rand.N(100*time.Millisecond))
				}
			})
		}
		pause(ctx, time.Second)
		swap(t, s, "key", v, "second")
	})
}

// TestSilentBeforeThePartitionMoves: for some seconds all brokers still name the silent broker as
// leader. Then they name another, and the writes continue at once. A store with a long timeout does
// not spend it on the silent broker.
func TestSilentBeforeThePartitionMoves(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster) {
		relays := c.relays()
		s := c.open(c.through(relays), kafkalog.WithTimeout(time.Minute))
		v := create(t, s, "key", "first")
		c.vouch()
		leader := c.LeaderFor(topic, 0)
		relays[leader].Blackhole()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.CompareAndSwap(short, "key", v, []byte("lost")); outcome(err) != "unknown" {
			t.Errorf("a write to the silent one: %v", err)
		}
		moved := make(chan time.Time, 1)
		go func() {
			pause(context.Background(), 1500*time.Millisecond)
			_ = c.MoveTopicPartition(topic, 0, (leader+1)%3)
			moved <- time.Now()
		}()
		c.insist(s, "key", v, patience) // no caller gives up during that time
		late := time.Since(<-moved)
		t.Logf("it takes %v", late)
		if late > 15*time.Second {
			t.Error("that is too long")
		}
	})
}

// TestOpenBesideSilentBrokers: two of three seeds accept connections and never answer. A store with
// a long timeout finds the third one soon.
func TestOpenBesideSilentBrokers(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster) {
		_ = c.open(c.direct()).Close() // this creates the topic
		relays := c.relays()
		for i, r := range relays {
			if int32(i) != c.LeaderFor(topic, 0) {
				r.Blackhole()
			}
		}
		var all sync.WaitGroup
		defer all.Wait()
		for range 3 { // the order in which brokers are asked is random
			all.Go(func() {
				began := time.Now()
				s, err := kafkalog.Open(within(t), c.through(relays), topic, kafkalog.WithTimeout(time.Minute))
				if err == nil {
					_, err = s.Read(within(t), "key")
					_ = s.Close()
				}
				if took := time.Since(began); took > 15*time.Second || err != nil {
					t.Errorf("it takes %v: %v", took, err)
				}
			})
		}
	})
}
