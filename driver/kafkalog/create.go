package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Settings of a new topic of elections.
const (
	retentionBytes = 64 << 20
	segmentBytes   = 16 << 20
)

// safely returns the settings of a topic with so many replicas.
func safely(replicas int) map[string]string {
	inSync := "1"
	if replicas >= broker.UsualReplicas {
		inSync = "2"
	}
	return map[string]string{
		"cleanup.policy":                 "delete",
		"retention.ms":                   "-1",
		"retention.bytes":                fmt.Sprint(retentionBytes),
		"segment.bytes":                  fmt.Sprint(segmentBytes),
		"min.insync.replicas":            inSync,
		"unclean.leader.election.enable": "false",
		"message.timestamp.type":         "LogAppendTime",
	}
}

// create makes the topic: one partition, on three brokers if there are so many, and two of them
// must have a write. Another process may be doing the same.
func (s *Store) create(ctx context.Context, replicas int) error {
	t := topicOf(s.wire.topic)
	t.Replicas = replicas
	if err := t.Create(ctx, s.client, s.wire.timeout); err != nil {
		return err
	}
	return s.appear(ctx)
}

// topicOf returns the settings that elections need of a topic.
func topicOf(name string) broker.Topic { return broker.Topic{Name: name, Settings: safely} }

// CreateCommand returns the command line of Kafka's own tools that makes a topic with the settings
// that Open gives it. The parameter at, if not empty, is put before the other options. It says how
// to reach the brokers, such as "--bootstrap-server kafka-1:9092".
func CreateCommand(topic, at string) string { return topicOf(topic).Recipe(at) }

// appear waits until the brokers know the topic.
func (s *Store) appear(ctx context.Context) error {
	var p pause
	for {
		at, err := s.wire.locate(ctx)
		if err == nil && at.leader >= 0 {
			return nil
		}
		p.sleep(ctx, lastPause)
		if cause := context.Cause(ctx); cause != nil {
			return because(cause, err)
		}
		if p.next > time.Second/2 && err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) && !kerr.IsRetriable(err) {
			return err
		}
	}
}
