package kafkalog

import (
	"context"

	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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
