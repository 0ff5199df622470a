package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
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

// haul is the result of a fetch.
type haul struct {
	records []*kgo.Record
	next    int64 // where to go on
	start   int64 // where the log begins
	epoch   int32 // of the last record, -1 if nothing came
}

// errDiverged reports that the log no longer holds the records that were read.
var errDiverged = errors.New("the log was truncated: what was read of it is no longer there")

// fetch reads from an offset on and waits for so long if there is nothing yet. It names the epoch
// of the last record that was read, -1 if there is none, so that the leader can detect that its own
// record there is another one.
func (w *wire) fetch(ctx context.Context, at place, offset int64, epoch int32, wait time.Duration) (haul, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+w.timeout)
	defer cancel()
	answer, err := w.ask(ctx, at, w.fetchRequest(at, offset, epoch, wait))
	if err != nil {
		return haul{}, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return haul{}, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return haul{}, broker.ErrAnswer
	}
	return w.parse(&resp.Topics[0].Partitions[0], offset)
}

func (w *wire) fetchRequest(at place, offset int64, epoch int32, wait time.Duration) *kmsg.FetchRequest {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.FetchOffset = partition, at.epoch, offset
	p.LastFetchedEpoch, p.PartitionMaxBytes = epoch, maxFetch
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID, topic.Partitions = w.topic, at.id, append(topic.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(wait.Milliseconds()), 1, maxFetch
	req.Topics = append(req.Topics, topic)
	return req
}

func (w *wire) parse(p *kmsg.FetchResponseTopicPartition, offset int64) (haul, error) {
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		return haul{}, err
	}
	if p.DivergingEpoch.EndOffset >= 0 {
		return haul{}, errDiverged
	}
	opts := kgo.ProcessFetchPartitionOpts{Offset: offset, Topic: w.topic, Partition: partition, KeepControlRecords: true}
	got, next := kgo.ProcessFetchPartition(opts, p, kgo.DefaultDecompressor(), nil)
	h := haul{got.Records, max(next, offset), max(p.LogStartOffset, 0), -1}
	if n := len(h.records); n > 0 {
		h.epoch = h.records[n-1].LeaderEpoch
	}
	h.records = slices.DeleteFunc(h.records, isControl)
	return h, got.Err
}

// isControl finds the ends of others' transactions. They are not records to any reader, but where
// one is the last of the log, its epoch is the log's: with the epoch of the record before, it would
// look as if the log had been cut there.
func isControl(r *kgo.Record) bool { return r.Attrs.IsControl() }

// posts returns the records that are ours.
func (h haul) posts(tag string) []post {
	var all []post
	for _, r := range h.records {
		if p, ok := postOf(r, tag); ok {
			all = append(all, p)
		}
	}
	return all
}

func postOf(r *kgo.Record, tag string) (post, bool) {
	if !headed(r) {
		return post{}, false
	}
	p, ok := decode(r.Headers[0].Value, tag, r.Offset)
	p.value = r.Value
	return p, ok
}

func headed(r *kgo.Record) bool { return len(r.Headers) == 1 && r.Headers[0].Key == headerKey }

// verify asks a new leader whether its log holds the records that were read from the one before. A
// broker that became leader without the latest records has another end for the epoch in which the
// last one was written.
func (s *Store) verify(ctx context.Context, at place, st *stretch) error {
	if at.epoch == st.at.epoch || st.epoch < 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.wire.timeout)
	defer cancel()
	end, err := s.wire.endOf(ctx, at, st.epoch)
	if err == nil && end < st.fold.next {
		return errDiverged
	}
	return err
}

// endOf returns where the log of an epoch ends, as the leader has it.
func (w *wire) endOf(ctx context.Context, at place, epoch int32) (int64, error) {
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = partition, at.epoch, epoch
	topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
	topic.Topic, topic.Partitions = w.topic, append(topic.Partitions, p)
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.Topics = append(req.Topics, topic)
	answer, err := w.ask(ctx, at, req)
	if err != nil {
		return 0, err
	}
	topics := answer.(*kmsg.OffsetForLeaderEpochResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 {
		return 0, broker.ErrAnswer
	}
	got := topics[0].Partitions[0]
	return got.EndOffset, kerr.ErrorForCode(got.ErrorCode)
}

const (
	// maxAsked is how many times brokers are asked the same at a time: two silent ones may come up
	// again as seeds.
	maxAsked = 6
	// mostPatience is longer than a healthy broker takes.
	mostPatience = 250 * time.Millisecond
)

// reply is the answer of one broker.
type reply struct {
	answer kmsg.Response
	err    error
}

// anyone asks one broker a question that all of them can answer, and another one while there is no
// answer: a frozen broker keeps its connections and sends nothing, and the client gives it up much
// later. The client chooses the brokers in turn.
func (w *wire) anyone(ctx context.Context, question func() kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	replies := make(chan reply, maxAsked)
	ask := func() {
		answer, err := w.client.Request(ctx, question())
		replies <- reply{answer, err}
	}
	another := time.NewTicker(w.patience())
	defer another.Stop()
	asked, failed := 0, 0
	for {
		if asked == failed { // no broker is being asked
			asked++
			go ask()
		}
		select {
		case r := <-replies:
			failed++
			if r.err == nil || broker.IsRefusal(r.err) || failed == maxAsked || ctx.Err() != nil {
				return r.answer, r.err
			}
		case <-another.C:
			if asked < maxAsked {
				asked++
				go ask()
			}
		}
	}
}

// patience is how long a broker may take before it is doubted, which costs little.
func (w *wire) patience() time.Duration { return min(w.timeout/8, mostPatience) }

// Parts of a record batch in the present format.
const (
	batchMagic    = 2
	beforeLength  = 12 // first offset and length
	beforeChecked = 21 // up to and with the checksum
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeBatch makes one record batch of posts, uncompressed, without a producer that the broker
// would know. So the broker never takes one for the repetition of another; the rule of the log
// does.
func encodeBatch(posts []post, tag string, now time.Time) []byte {
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1,
		Magic:                batchMagic,
		LastOffsetDelta:      int32(len(posts) - 1),
		FirstTimestamp:       now.UnixMilli(),
		MaxTimestamp:         now.UnixMilli(),
		ProducerID:           -1,
		ProducerEpoch:        -1,
		FirstSequence:        -1,
		NumRecords:           int32(len(posts)),
	}
	for i, p := range posts {
		b.Records = append(b.Records, encodeRecord(p, tag, int32(i))...)
	}
	raw := b.AppendTo(nil)
	b.Length = int32(len(raw) - beforeLength)
	raw = b.AppendTo(nil)
	b.CRC = int32(crc32.Checksum(raw[beforeChecked:], castagnoli))
	return b.AppendTo(nil)
}

// encodeRecord makes one record of a batch. Its length counts the bytes after it.
func encodeRecord(p post, tag string, at int32) []byte {
	r := kmsg.Record{
		OffsetDelta: at,
		Value:       p.value,
		Headers:     []kmsg.Header{{Key: headerKey, Value: p.encode(tag)}},
	}
	const lengthOfZero = 1
	r.Length = int32(len(r.AppendTo(nil)) - lengthOfZero)
	return r.AppendTo(nil)
}
