package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The one partition that holds the log. The store ignores other partitions, so that adding some
// does no harm.
const partition = 0

// maxFetch bounds the answer to one fetch, in bytes. A broker sends one batch of any size.
const maxFetch = 4 << 20

// wire sends requests, one for each call, to the broker that leads the partition. It does not use
// the client's own producer and consumer: they keep, repeat and reorder, and are bound to a topic's
// name, while this is bound to its id.
type wire struct {
	client  *kgo.Client
	topic   string
	timeout time.Duration
}

// place is where the log is found.
type place struct {
	id     [16]byte
	leader int32
	epoch  int32
}

// tag is the id of the topic in short.
func (p place) tag() string { return fmt.Sprintf("%x", p.id[:6]) }

// errNoID: without the id two topics of one name, one after the other, cannot be distinguished.
// Records carry it, so a client that gets no id and one that gets it would read two different logs
// in one partition.
var errNoID = errors.New("the brokers do not name the topic's id: it takes Kafka 2.8 or newer on all brokers " +
	"(inter.broker.protocol.version too), and a client that is not held to older requests")

// locate asks any broker where the log is.
func (w *wire) locate(ctx context.Context) (place, error) {
	t, err := w.metadata(ctx)
	if err != nil {
		return place{}, err
	}
	for _, p := range t.Partitions {
		if p.Partition == partition {
			return place{t.TopicID, p.Leader, p.LeaderEpoch}, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return place{}, fmt.Errorf("%w: topic %s has no partition %d", broker.ErrAnswer, w.topic, partition)
}

func (w *wire) metadata(ctx context.Context) (kmsg.MetadataResponseTopic, error) {
	return w.describe(ctx, false)
}

// describe returns the metadata, with this user's rights to the topic if rights is set.
func (w *wire) describe(ctx context.Context, rights bool) (kmsg.MetadataResponseTopic, error) {
	answer, err := w.anyone(ctx, func() kmsg.Request {
		req := kmsg.NewPtrMetadataRequest()
		req.IncludeTopicAuthorizedOperations = rights
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &w.topic
		req.Topics = append(req.Topics, topic)
		return req
	})
	if err != nil {
		return kmsg.MetadataResponseTopic{}, err
	}
	topics := answer.(*kmsg.MetadataResponse).Topics
	if len(topics) != 1 {
		return kmsg.MetadataResponseTopic{}, broker.ErrAnswer
	}
	err = kerr.ErrorForCode(topics[0].ErrorCode)
	if err == nil && topics[0].TopicID == [16]byte{} {
		err = errNoID
	}
	return topics[0], err
}

// ask sends one request to the leader.
func (w *wire) ask(ctx context.Context, at place, req kmsg.Request) (kmsg.Response, error) {
	return w.client.Broker(int(at.leader)).Request(ctx, req)
}

// The end of the log that is asked for.
const (
	atEnd   = -1
	atStart = -2
)

// bound returns where the log ends, or where it begins.
func (w *wire) bound(ctx context.Context, at place, which int64) (int64, error) {
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.Timestamp = partition, at.epoch, which
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic, topic.Partitions = w.topic, append(topic.Partitions, p)
	req := kmsg.NewPtrListOffsetsRequest()
	req.Topics = append(req.Topics, topic)
	answer, err := w.ask(ctx, at, req)
	if err != nil {
		return 0, err
	}
	topics := answer.(*kmsg.ListOffsetsResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 {
		return 0, broker.ErrAnswer
	}
	got := topics[0].Partitions[0]
	return got.Offset, kerr.ErrorForCode(got.ErrorCode)
}

// produce appends a batch once, and asks for it on all replicas that are in sync.
func (w *wire) produce(ctx context.Context, at place, batch []byte) error {
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, batch
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID, topic.Partitions = w.topic, at.id, append(topic.Partitions, p)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, int32((w.timeout / 2).Milliseconds()), append(req.Topics, topic)
	answer, err := w.ask(ctx, at, req)
	if err != nil {
		return err
	}
	topics := answer.(*kmsg.ProduceResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 {
		return broker.ErrAnswer
	}
	return kerr.ErrorForCode(topics[0].Partitions[0].ErrorCode)
}
