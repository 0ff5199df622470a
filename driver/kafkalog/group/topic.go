package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// seeTopic makes sure that the topic exists.
func (g *Group) seeTopic(ctx context.Context) error {
	err := g.look(ctx)
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return err
	}
	if g.cfg.NoCreate {
		return fmt.Errorf("it does not exist, and is not to be created: %w", err)
	}
	return g.create(ctx)
}

func (g *Group) look(ctx context.Context) error {
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &g.cfg.Topic
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, topic)
	answer, err := req.RequestWith(ctx, g.client)
	if err != nil {
		return err
	}
	if len(answer.Topics) != 1 {
		return broker.ErrAnswer
	}
	err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return fmt.Errorf("grant Describe on it: %w", err)
	}
	return err
}

// create makes the topic. Another process may be doing the same.
func (g *Group) create(ctx context.Context) error {
	t := broker.Topic{Name: g.cfg.Topic, Replicas: g.cfg.Replicas}
	if err := t.Create(ctx, g.client, g.cfg.timeout()); err != nil {
		return err
	}
	return g.appear(ctx)
}

// appear waits until the asked broker knows the topic.
func (g *Group) appear(ctx context.Context) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second/2) {
		err := g.look(ctx)
		if err == nil || !kerr.IsRetriable(err) {
			return err
		}
		sleep(ctx, wait)
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
