package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
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
		c.moveOn()
		for name, s := range map[string]*kafkalog.Store{"old": old, "new": c.open(c.direct())} {
			eventually(t, "the "+name+" reader knows the leader", shows(s, "key", func(e driver.Entry) bool { return e.Absent() && !e.Pristine }))
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
		relays[c.seeds[leader]].Blackhole()
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
		c.moveOn()
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
		c.moveOn()
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

// TestSilentBroker: the partition's leader becomes silent and another broker takes over. Callers
// with less time than the store's timeout find the new leader, long before the connections to the
// old one time out, which takes at least 30 s.
func TestSilentBroker(t *testing.T) {
	t.Parallel()
	const hasty = 600 * time.Millisecond
	for name, call := range map[string]func(c *cluster, s *kafkalog.Store, v driver.Version){
		"writers": func(c *cluster, s *kafkalog.Store, v driver.Version) { c.insist(s, "key", v, hasty) },
		"readers": func(c *cluster, s *kafkalog.Store, v driver.Version) {
			eventually(c.tb, "a read", showsWithin(hasty, s, "key", func(e driver.Entry) bool { return e.Version == v }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, c *cluster) {
				relays := c.relays()
				s := c.open(c.through(relays), kafkalog.WithTimeout(time.Minute))
				v := create(t, s, "key", "first")
				if name == "readers" {
					c.vouch()
				}
				relays[c.seeds[c.LeaderFor(topic, 0)]].Blackhole()
				c.moveOn()
				prompt(t, 15*time.Second, func() { call(c, s, v) })
			})
		})
	}
}

// TestSlowLeader: a leader that is slower than the time limit of many callers is doubted all the
// time. The store still reads from it, and sees a write by a caller with enough time.
func TestSlowLeader(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		ways := c.relays()
		s := c.open(c.through(ways), kafkalog.WithTimeout(time.Minute))
		v := create(t, s, "key", "first")
		ways.Delay(200 * time.Millisecond)
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
		relays[c.seeds[leader]].Blackhole()
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
		if late := time.Since(<-moved); late > 15*time.Second {
			t.Errorf("it takes %v", late)
		}
	})
}

// TestOpenBesideSilentBrokers: two of three seeds accept connections and never answer. A store with
// a long timeout finds the third one soon.
func TestOpenBesideSilentBrokers(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster) {
		_ = c.open(c.direct()).Close() // this creates the topic
		relays := c.relays()
		for i, address := range c.seeds {
			if int32(i) != c.LeaderFor(topic, 0) {
				relays[address].Blackhole()
			}
		}
		var all sync.WaitGroup
		defer all.Wait()
		for range 3 { // the order in which brokers are asked is random
			all.Go(func() {
				prompt(t, 15*time.Second, func() {
					s, err := kafkalog.Open(within(t), c.through(relays), topic, kafkalog.WithTimeout(time.Minute))
					if err == nil {
						_, err = s.Read(within(t), "key")
						_ = s.Close()
					}
					if err != nil {
						t.Error(err)
					}
				})
			})
		}
	})
}

// TestReadsNeverGoBack: the log must be read again. The broker that is asked for its leader was cut
// off: it names itself, and shows the log as it was. A process whose own write was confirmed must
// not read an earlier state.
func TestReadsNeverGoBack(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		v := create(t, s, "key", "first")
		past := c.snapshot()
		c.vouch()
		c.moveOn()
		c.insist(s, "key", v, time.Second)
		v = swap(t, s, "key", read(t, s, "key").Version, "confirmed")
		past.haunt(c)
		c.disturb()
		eventually(t, "the log is read again", shows(s, "key", func(e driver.Entry) bool {
			if e.Version != v {
				t.Fatalf("after %s was confirmed it reads %q at %s", v, e.Value, e.Version)
			}
			return past.asked()
		}))
	})
}

// snapshot holds the answers of a broker that wrongly names itself as leader.
type snapshot struct {
	epoch  int32
	places *kmsg.MetadataResponse
	log    kmsg.FetchResponseTopicPartition
	stale  chan struct{} // one for each time that it named itself, up to the capacity
}

func (c *cluster) snapshot() *snapshot {
	c.tb.Helper()
	name, client := topic, c.client()
	of := kmsg.NewMetadataRequestTopic()
	of.Topic = &name
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, of)
	places, err := req.RequestWith(within(c.tb), client)
	if err != nil {
		c.tb.Fatal(err)
	}
	p := kmsg.NewFetchRequestTopicPartition()
	p.PartitionMaxBytes = 1 << 20
	from := kmsg.NewFetchRequestTopic()
	from.Topic, from.TopicID, from.Partitions = topic, places.Topics[0].TopicID, append(from.Partitions, p)
	fetch := kmsg.NewPtrFetchRequest()
	fetch.MaxBytes, fetch.Topics = 1<<20, append(fetch.Topics, from)
	got, err := fetch.RequestWith(within(c.tb), client.Broker(int(c.LeaderFor(topic, 0))))
	if err != nil {
		c.tb.Fatal(err)
	}
	return &snapshot{places.Topics[0].Partitions[0].LeaderEpoch, places, got.Topics[0].Partitions[0], make(chan struct{}, 3)}
}

// asked reports whether the broker has named itself several times.
func (s *snapshot) asked() bool { return len(s.stale) == cap(s.stale) }

// haunt fails the next fetch from the present leader so that the log must be read again. The former
// broker answers the next requests for the leader, and every later request to it.
func (s *snapshot) haunt(c *cluster) {
	c.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if s.asked() {
			return nil, nil, false
		}
		c.KeepControl()
		s.stale <- struct{}{}
		answer := *s.places
		answer.Version = r.GetVersion()
		return &answer, nil, true
	})
	c.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked := r.(*kmsg.ListOffsetsRequest).Topics[0].Partitions[0]
		if asked.CurrentLeaderEpoch != s.epoch {
			return nil, nil, false
		}
		p := kmsg.NewListOffsetsResponseTopicPartition()
		if p.Offset = s.log.HighWatermark; asked.Timestamp == -2 {
			p.Offset = 0
		}
		of := kmsg.NewListOffsetsResponseTopic()
		of.Topic, of.Partitions = topic, append(of.Partitions, p)
		answer := r.ResponseKind().(*kmsg.ListOffsetsResponse)
		answer.Topics = append(answer.Topics, of)
		return answer, nil, true
	})
	failed := false
	c.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		from := r.(*kmsg.FetchRequest).Topics[0]
		asked, p := from.Partitions[0], s.log
		switch {
		case asked.CurrentLeaderEpoch == s.epoch && asked.FetchOffset >= p.HighWatermark:
			p.RecordBatches = nil
		case asked.CurrentLeaderEpoch == s.epoch:
		case failed:
			return nil, nil, false
		default:
			failed, p = true, kmsg.NewFetchResponseTopicPartition()
			p.ErrorCode = kerr.OffsetOutOfRange.Code
		}
		of := kmsg.NewFetchResponseTopic()
		of.Topic, of.TopicID, of.Partitions = topic, from.TopicID, append(of.Partitions, p)
		answer := r.ResponseKind().(*kmsg.FetchResponse)
		answer.Topics = append(answer.Topics, of)
		return answer, nil, true
	})
}

// TestTruncatedLog lets the new leader of the partition report that its log of the last epoch ends
// earlier, or that the offset is out of range. A call in progress must end with an unknown outcome,
// and the log must be read again. The floor stays.
func TestTruncatedLog(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(c *cluster){
		"another end of the epoch": func(c *cluster) {
			c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(r kmsg.Request) (kmsg.Response, error, bool) {
				return epochEnds(r.(*kmsg.OffsetForLeaderEpochRequest)), nil, true
			})
			c.moveOn()
		},
		"out of range": func(c *cluster) {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.OffsetOutOfRange})
			c.disturb()
		},
		"diverged": func(c *cluster) {
			c.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
				return diverges(r.(*kmsg.FetchRequest)), nil, true
			})
			c.disturb()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, c *cluster) {
				s := c.open(c.direct())
				v := create(t, s, "key", "first")
				for i := range 5 {
					v = swap(t, s, "key", v, fmt.Sprint(i))
				}
				before := read(t, s, "key")
				pushed := make(chan driver.Entry, 10)
				stop, err := s.Watch(t.Context(), "key", func(e driver.Entry) { pushed <- e })
				if err != nil {
					t.Fatal(err)
				}
				defer stop()
				cut(c)
				select {
				case e := <-pushed: // of the log that was read again: no write came
					if e.Version != v || e.Floor < before.Floor {
						t.Errorf("after the log was read again: %+v, before: %+v", e, before)
					}
				case <-within(t).Done():
					t.Fatal("the log is not read again")
				}
				eventually(t, "it goes on", func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_, err := s.CompareAndSwap(ctx, "key", v, []byte("next"))
					return err == nil || errors.Is(err, driver.ErrConflict)
				})
			})
		})
	}
}

// epochEnds reports that the log ends with its third record.
func epochEnds(r *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	answer := r.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
	p.LeaderEpoch, p.EndOffset = r.Topics[0].Partitions[0].LeaderEpoch, 3
	topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
	topic.Topic, topic.Partitions = r.Topics[0].Topic, append(topic.Partitions, p)
	answer.Topics = append(answer.Topics, topic)
	return answer
}

func diverges(r *kmsg.FetchRequest) kmsg.Response {
	answer := r.ResponseKind().(*kmsg.FetchResponse)
	p := kmsg.NewFetchResponseTopicPartition()
	p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = 0, 3
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic, topic.TopicID, topic.Partitions = r.Topics[0].Topic, r.Topics[0].TopicID, append(topic.Partitions, p)
	answer.Topics = append(answer.Topics, topic)
	return answer
}

// TestCallEndsWhenItsLogIsTruncated acknowledges a write that never appears in the log, as if it
// was cut off with the end of the log. Its caller has no time limit. The call ends when the log is
// read again, although no other call notices the truncation.
func TestCallEndsWhenItsLogIsTruncated(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		v := create(t, s, "key", "first")
		acknowledged := make(chan struct{})
		c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
			defer close(acknowledged)
			return acknowledge(r.(*kmsg.ProduceRequest)), nil, true
		})
		ended := make(chan error, 1)
		go func() {
			_, err := s.CompareAndSwap(t.Context(), "key", v, []byte("second"))
			ended <- err
		}()
		<-acknowledged
		pause(t.Context(), 20*time.Millisecond)
		select {
		case err := <-ended:
			t.Fatalf("an acknowledgement ends the call: %v", err)
		default:
		}
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.OffsetOutOfRange})
		c.disturb()
		select {
		case err := <-ended:
			if outcome(err) != "unknown" {
				t.Errorf("the call ends with %v", err)
			}
		case <-within(t).Done():
			t.Fatal("the call does not end")
		}
		if e := read(t, s, "key"); e.Version != v {
			t.Errorf("the cell holds %s", e.Value)
		}
	})
}

// acknowledge acknowledges the request.
func acknowledge(r *kmsg.ProduceRequest) kmsg.Response {
	answer := r.ResponseKind().(*kmsg.ProduceResponse)
	topic := kmsg.NewProduceResponseTopic()
	topic.Topic, topic.TopicID = r.Topics[0].Topic, r.Topics[0].TopicID
	topic.Partitions = append(topic.Partitions, kmsg.NewProduceResponseTopicPartition())
	answer.Topics = append(answer.Topics, topic)
	return answer
}
