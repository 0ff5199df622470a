package kafkalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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
