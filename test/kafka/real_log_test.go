//go:build integration

package kafka

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestRealTwoOfThreeDown: no write may succeed, and no failed write may be reported as a success.
// When the brokers are back, the cell holds the last success or one of the writes with an unknown
// outcome, for old and new readers.
func TestRealTwoOfThreeDown(t *testing.T) {
	soak(t)
	b := startReal(t)
	s := b.open(b.direct())
	v := b.create(s, "key", "first")
	leader := b.Leader(t, b.topic, 0)
	for n := 1; n <= 3; n++ {
		if n != leader {
			b.must(b.Kill(n))
		}
	}
	for i := range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := s.CompareAndSwap(ctx, "key", v, fmt.Append(nil, "open ", i))
		if cancel(); outcome(err) != "unknown" {
			t.Errorf("alone the broker answers: %v", err)
		}
	}
	b.must(b.Heal(b.context()))
	b.recovers(s, "key", v)
}

// recovers waits until swaps work again, and compares the old reader with a new one.
func (b *brokers) recovers(s *kafkalog.Store, key string, v driver.Version) {
	b.tb.Helper()
	wait.Until(b.tb, "a swap works again", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if e, err := s.Read(ctx, key); err == nil {
			v = e.Version
		}
		next, err := s.CompareAndSwap(ctx, key, v, []byte("last"))
		if err == nil {
			v = next
		}
		return err == nil
	})
	for name, s := range map[string]*kafkalog.Store{"old": s, "new": b.open(b.direct())} {
		if e := read(b.tb, s, key); e.Version != v {
			b.tb.Errorf("the %s reader sees %s in version %s, not %s", name, e.Value, e.Version, v)
		}
	}
}

// TestRealTooFewCopies: if the topic requires all three copies and one is missing, a write is
// refused and not written.
func TestRealTooFewCopies(t *testing.T) {
	soak(t)
	b := startReal(t)
	s := b.open(b.direct())
	v := b.create(s, "key", "first")
	b.alter("min.insync.replicas", "3")
	b.must(b.Stop(b.Leader(t, b.topic, 0)%3 + 1))
	wait.Until(b.tb, "a write is refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		next, err := s.CompareAndSwap(ctx, "key", v, []byte("x"))
		if err == nil {
			v = next // the copies were still complete
		}
		return err != nil && outcome(err) == "unknown"
	})
	b.alter("min.insync.replicas", "2")
	b.recovers(s, "key", v)
}

// alter changes a setting of the topic.
func (b *brokers) alter(setting, value string) {
	b.tb.Helper()
	conf := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	conf.Name, conf.Value, conf.Op = setting, &value, kmsg.IncrementalAlterConfigOpSet
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.Configs = kmsg.ConfigResourceTypeTopic, b.topic, append(r.Configs, conf)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, r)
	answer, err := req.RequestWith(b.context(), b.client())
	if err != nil {
		b.tb.Fatal(err)
	}
	if err := kerr.ErrorForCode(answer.Resources[0].ErrorCode); err != nil {
		b.tb.Fatal(err)
	}
}

// TestRealBrokersRestart: all brokers are killed and restart with their files. Nothing is lost.
func TestRealBrokersRestart(t *testing.T) {
	soak(t)
	b := startReal(t)
	s := b.open(b.direct())
	v := b.create(s, "key", "0")
	for i := range 20 {
		v = swap(t, s, "key", v, fmt.Sprint(i+1))
	}
	for n := 1; n <= 3; n++ {
		b.must(b.Kill(n))
	}
	b.must(b.Heal(b.context()))
	wait.Until(b.tb, "the log is read", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := s.Read(ctx, "key")
		return err == nil
	})
	if e := read(t, s, "key"); e.Version != v {
		t.Errorf("the cell holds %s in version %s, not %s", e.Value, e.Version, v)
	}
	b.recovers(s, "key", v)
}

// TestRealTimestamps: the timestamps that brokers or writers put into the log decide nothing.
func TestRealTimestamps(t *testing.T) {
	b := startReal(t)
	s := b.open(b.direct())
	v := create(t, s, "key", "0")
	for i, kind := range []string{"LogAppendTime", "CreateTime", "LogAppendTime"} {
		b.alter("message.timestamp.type", kind)
		v = swap(t, s, "key", v, fmt.Sprint(i+1))
		b.recovers(s, "key", v)
		v = read(t, s, "key").Version
	}
	var kinds int
	for _, r := range b.records() {
		if r.Attrs.TimestampType() == 1 {
			kinds++
		}
	}
	if kinds == 0 {
		t.Error("a topic that Open has created is not in the brokers' time")
	}
}

// bounds returns where the log begins and ends.
func (b *brokers) bounds() (start, end int64) {
	b.tb.Helper()
	for which, to := range map[int64]*int64{-2: &start, -1: &end} {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp = which
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic, topic.Partitions = b.topic, append(topic.Partitions, p)
		req := kmsg.NewPtrListOffsetsRequest()
		req.Topics = append(req.Topics, topic)
		answer, err := req.RequestWith(b.context(), b.client())
		if err != nil {
			b.tb.Fatal(err)
		}
		*to = answer.Topics[0].Partitions[0].Offset
	}
	return start, end
}

// records returns all records of the log, as any consumer gets them.
func (b *brokers) records() []*kgo.Record {
	b.tb.Helper()
	_, end := b.bounds()
	client := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{b.topic: {0: kgo.NewOffset().AtStart()}}))
	var all []*kgo.Record
	for len(all) == 0 || all[len(all)-1].Offset < end-1 {
		fetched := client.PollFetches(b.context())
		if err := fetched.Err(); err != nil {
			b.tb.Fatal(err)
		}
		all = append(all, fetched.Records()...)
	}
	return all
}

// TestRealRecreatedTopic: the leader steps down, and the next leader has a higher token, because
// the candidates knew the old one.
func TestRealRecreatedTopic(t *testing.T) {
	b := startReal(t)
	s := b.open(b.direct())
	for i := range 50 {
		create(t, s, fmt.Sprint("other ", i), "x") // so that the old floor is above the new one
	}
	e, err := tenure.New(s, "billing", tenure.Config{ID: "a", Lease: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	old, err := e.Campaign(b.context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Complete(b.context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	b.DeleteTopic(t, b.topic)
	b.CreateTopic(t, b.topic, map[string]string{"retention.ms": "-1", "retention.bytes": fmt.Sprint(64 << 20)})
	select {
	case <-old.Context().Done():
		t.Logf("the leader steps down after %v: %v", time.Since(began), context.Cause(old.Context()))
	case <-b.context().Done():
		t.Fatal("the leader leads on without its topic")
	}
	_ = old.Resign(b.context())
	next, err := e.Campaign(b.context())
	if err != nil {
		t.Fatal(err)
	}
	if next.Token() <= old.Token() {
		t.Errorf("token %d after %d", next.Token(), old.Token())
	}
	_ = next.Resign(b.context())
}

// TestRealHeadOfTheLogIsRemoved: an operator has removed the records of an idle election. Then the
// key is absent, for new and old readers. Its old versions no longer fit. Its terms continue above
// the old ones.
func TestRealHeadOfTheLogIsRemoved(t *testing.T) {
	b := startReal(t)
	old := b.open(b.direct())
	v := create(t, old, "idle", "released")
	live := create(t, old, "live", "0")
	fill(t, old, 12_000, []byte("x"))
	live = swap(t, old, "live", live, "1")
	b.removeUpTo(6_000)
	fill(t, old, 256, []byte("x")) // this notifies the old reader
	for name, s := range map[string]*kafkalog.Store{"old": old, "new": b.open(b.direct())} {
		if e := read(t, s, "live"); e.Version != live {
			t.Errorf("the %s reader: the live cell holds %q", name, e.Value)
		}
		if e := read(t, s, "idle"); !e.Absent() || e.Pristine || e.Floor < 12_000 {
			t.Errorf("the %s reader: the idle cell is %+v", name, e)
		}
		if _, err := s.CompareAndSwap(b.context(), "idle", v, []byte("x")); outcome(err) != "conflict" {
			t.Errorf("the %s reader: a swap from the old version: %v", name, err)
		}
	}
}

// removeUpTo removes the head of the log.
func (b *brokers) removeUpTo(offset int64) {
	b.tb.Helper()
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Offset = offset
	topic := kmsg.NewDeleteRecordsRequestTopic()
	topic.Topic, topic.Partitions = b.topic, append(topic.Partitions, p)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics = append(req.Topics, topic)
	answer, err := req.RequestWith(b.context(), b.client())
	if err != nil {
		b.tb.Fatal(err)
	}
	if err := kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode); err != nil {
		b.tb.Fatal(err)
	}
}

// TestRealLogIsBounded writes three times the size of the log. The bounds are the lowest that Open
// accepts.
func TestRealLogIsBounded(t *testing.T) {
	soak(t)
	const retention, segment = 16 << 20, 2 << 20
	b := startReal(t)
	s := b.open(b.direct())
	b.alter("retention.bytes", fmt.Sprint(retention))
	b.alter("segment.bytes", fmt.Sprint(segment))
	v := create(t, s, "live", "0")
	value := bytes.Repeat([]byte("x"), driver.MaxValue)
	for i := range 6 {
		fill(t, s, 2048, value)
		v = swap(t, s, "live", v, fmt.Sprint(i))
	}
	wait.Until(b.tb, "the log is short again", func() bool {
		start, end := b.bounds()
		return start > 0 && (end-start)*driver.MaxValue <= retention+2*segment
	})
	start, end := b.bounds()
	t.Logf("of %d MB %d are kept", end*driver.MaxValue>>20, (end-start)*driver.MaxValue>>20)
	if e := read(t, b.open(b.direct()), "live"); e.Version != v {
		t.Errorf("a new reader sees %q", e.Value)
	}
}
