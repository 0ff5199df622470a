package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestPristineOnlyUnderTheFirstLeader: a later leader of the partition may have lost a record of an
// earlier election leader.
func TestPristineOnlyUnderTheFirstLeader(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster) {
		old := c.open(c.direct())
		create(t, old, "another", "x")
		before := read(t, old, "key")
		if !before.Pristine {
			t.Fatalf("in a topic that was just made: %+v", before)
		}
		if err := c.MoveTopicPartition(topic, 0, (c.LeaderFor(topic, 0)+1)%3); err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*kafkalog.Store{"old": old, "new": c.open(c.direct())} {
			eventually(t, "the "+name+" reader knows the leader", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				e, err := s.Read(ctx, "key")
				return err == nil && e.Absent() && !e.Pristine
			})
			if _, err := s.CompareAndSwap(within(t), "key", before.Version, []byte("x")); outcome(err) != "conflict" {
				t.Errorf("the %s reader: a claim of what was pristine: %v", name, err)
			}
		}
		create(t, old, "key", "first")
	})
}

// TestHungWriteEndsWithItsLeader: a write waits for a silent broker, on a store with a long
// timeout. It ends as soon as the store learns that the partition has moved. Another call with less
// time finds that out, even if its own write is never sent because too many writes already hang.
func TestHungWriteEndsWithItsLeader(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster) {
		relays := c.relays()
		produced := &sent{key: kmsg.Produce}
		s := c.open(c.through(relays, kgo.WithHooks(produced)), kafkalog.WithTimeout(time.Minute))
		v, other := create(t, s, "0", "first"), create(t, s, "other", "first")
		versions := []driver.Version{v, create(t, s, "1", "first")}
		c.vouch()
		leader := c.LeaderFor(topic, 0)
		synctest.Wait() // for the acknowledgments: a write without one would hang, too
		relays[leader].Blackhole()
		ended := make(chan error, len(versions))
		began := time.Now()
		for i, v := range versions {
			onItsWay := produced.another(t)
			go func() {
				_, err := s.CompareAndSwap(within(t), fmt.Sprint(i), v, []byte("second"))
				ended <- err
			}()
			onItsWay()
		}
		if err := c.MoveTopicPartition(topic, 0, (leader+1)%3); err != nil {
			t.Fatal(err)
		}
		c.insist(s, "other", other, 2500*time.Millisecond)
		for range versions {
			err := <-ended
			took := time.Since(began)
			t.Logf("a hung write ends after %v: %v", took, err)
			if outcome(err) != "unknown" || !strings.Contains(err.Error(), "another leader") || took > 25*time.Second {
				t.Error("that is not what it should be")
			}
		}
		swap(t, s, "0", v, "third")
	})
}

// TestOutdatedLeaderMetadata: brokers that were cut off name a former leader. A client that knows a
// later leader ignores them.
func TestOutdatedLeaderMetadata(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		v := create(t, s, "key", "first")
		name := topic
		asked := kmsg.NewMetadataRequestTopic()
		asked.Topic = &name
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = append(req.Topics, asked)
		old, err := req.RequestWith(within(t), c.client())
		if err != nil {
			t.Fatal(err)
		}
		c.vouch()
		if err := c.MoveTopicPartition(topic, 0, (c.LeaderFor(topic, 0)+1)%3); err != nil {
			t.Fatal(err)
		}
		c.insist(s, "key", v, time.Second)
		c.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			answer := *old
			answer.Version = r.GetVersion()
			return &answer, nil, true
		})
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.UnknownServerError})
		c.disturb()
		eventually(t, "it reads on", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			e, err := s.Read(ctx, "key")
			if err == nil {
				_, err = s.CompareAndSwap(ctx, "key", e.Version, []byte("third"))
			}
			return err == nil
		})
	})
}

// vouch makes every leader of the partition report that it has all of the log.
func (c *cluster) vouch() {
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		answer := epochEnds(r.(*kmsg.OffsetForLeaderEpochRequest)).(*kmsg.OffsetForLeaderEpochResponse)
		answer.Topics[0].Partitions[0].EndOffset = 1 << 40
		return answer, nil, true
	})
}

// insist writes until it has succeeded, with little time for each call. A conflict may come from an
// earlier attempt that was given up.
func (c *cluster) insist(s driver.Store, key string, v driver.Version, attention time.Duration) {
	c.tb.Helper()
	const value = "second"
	eventually(c.tb, "a write", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), attention)
		defer cancel()
		_, err := s.CompareAndSwap(ctx, key, v, []byte(value))
		if outcome(err) != "conflict" {
			return err == nil
		}
		e, err := s.Read(ctx, key)
		if err == nil && string(e.Value) != value {
			c.tb.Fatalf("another client has written %s", e.Value)
		}
		return err == nil
	})
}
