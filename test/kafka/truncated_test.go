package kafka

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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
			if err := c.MoveTopicPartition(topic, 0, (c.LeaderFor(topic, 0)+1)%3); err != nil {
				c.tb.Fatal(err)
			}
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
