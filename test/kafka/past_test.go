package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestReadsNeverGoBack: the log must be read again. The broker that is asked for its leader was cut
// off: it names itself, and shows the log as it was. A process whose own write was confirmed must
// not read an earlier state.
func TestReadsNeverGoBack(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		v := create(t, s, "key", "first")
		past := c.snapshot()
		c.vouch()
		if err := c.MoveTopicPartition(topic, 0, (c.LeaderFor(topic, 0)+1)%3); err != nil {
			t.Fatal(err)
		}
		c.insist(s, "key", v, time.Second)
		v = swap(t, s, "key", read(t, s, "key").Version, "confirmed")
		past.haunt(c)
		c.disturb()
		eventually(t, "the log is read again", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			e, err := s.Read(ctx, "key")
			if err == nil && e.Version != v {
				t.Fatalf("after %s was confirmed it reads %q at %s", v, e.Value, e.Version)
			}
			return err == nil && past.asked()
		})
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
