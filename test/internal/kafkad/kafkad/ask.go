package kafkad

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// settle is the time between two attempts of a request that has not yet succeeded.
const settle = 50 * time.Millisecond

// client returns a client of the super user, which soon gives up on a silent broker.
func (c *Cluster) client() (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.DialTimeout(time.Second),
		kgo.RequestTimeoutOverhead(2*time.Second), kgo.RetryTimeout(5*time.Second), kgo.MetadataMinAge(settle))
}

// until calls ask with a client until there is no error or the context ends.
func (c *Cluster) until(ctx context.Context, what string, ask func(*kgo.Client) error) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		err := ask(client)
		if err == nil {
			return nil
		}
		if fault := c.endedEarly(); fault != nil {
			return fault
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(settle):
		}
	}
}

// endedEarly returns an error if a broker should run and has ended.
func (c *Cluster) endedEarly() error {
	for _, b := range c.brokers {
		if b.EndedEarly() {
			return b.Fault("ended by itself")
		}
	}
	return nil
}

// Ready waits until all brokers are members and topics with three copies can be created.
func (c *Cluster) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const probe = "kafkad.ready"
	err := c.until(ctx, "the brokers are not ready", func(client *kgo.Client) error {
		if err := c.members(ctx, c.brokers[:]...); err != nil {
			return err
		}
		return createTopic(ctx, client, probe, nil)
	})
	if err != nil {
		return err
	}
	return c.until(ctx, "the probe's topic cannot be deleted", func(client *kgo.Client) error {
		return deleteTopic(ctx, client, probe)
	})
}

// joined waits until a broker is a member of the cluster.
func (c *Cluster) joined(ctx context.Context, b *broker) error {
	return c.until(ctx, fmt.Sprintf("broker %d does not join", b.n), func(*kgo.Client) error {
		return c.members(ctx, b)
	})
}

// Complete waits until all brokers are members and all copies of all partitions are complete.
func (c *Cluster) Complete(ctx context.Context) error {
	return c.until(ctx, "copies are missing", func(client *kgo.Client) error {
		if err := c.members(ctx, c.brokers[:]...); err != nil {
			return err
		}
		return complete(ctx, client)
	})
}

// members returns an error unless each of these brokers names all of them as members. Answers of
// other brokers may be old.
func (c *Cluster) members(ctx context.Context, wanted ...*broker) error {
	for _, b := range wanted {
		there, err := c.membersBy(ctx, b)
		if err != nil {
			return fmt.Errorf("broker %d: %w", b.n, err)
		}
		for _, other := range wanted {
			if !there[other.n] {
				return fmt.Errorf("broker %d is no member, by the word of broker %d", other.n, b.n)
			}
		}
	}
	return nil
}

// membersBy returns the members that one broker names.
func (c *Cluster) membersBy(ctx context.Context, b *broker) (map[int]bool, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(ports.Address(c.layout.Plain[b.n-1])), kgo.DialTimeout(time.Second),
		kgo.RequestTimeoutOverhead(2*time.Second))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	answer, err := client.SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return nil, err
	}
	there := map[int]bool{}
	for _, member := range answer.(*kmsg.MetadataResponse).Brokers {
		there[int(member.NodeID)] = true
	}
	return there, nil
}

func complete(ctx context.Context, client *kgo.Client) error {
	got, err := metadata(ctx, client, nil)
	if err != nil {
		return err
	}
	for _, t := range got.Topics {
		for _, p := range t.Partitions {
			if len(p.ISR) < len(p.Replicas) || p.Leader < 0 {
				return fmt.Errorf("partition %d of %s has %d copies of %d", p.Partition, *t.Topic, len(p.ISR), len(p.Replicas))
			}
		}
	}
	return nil
}

// metadata asks any broker about some topics, or about all topics if none are given.
func metadata(ctx context.Context, client *kgo.Client, topics []kmsg.MetadataRequestTopic) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = topics
	return req.RequestWith(ctx, client)
}

func createTopic(ctx context.Context, client *kgo.Client, name string, settings map[string]string) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, Brokers
	for key, value := range settings {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = key, &value
		topic.Configs = append(topic.Configs, config)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	got, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	err = kerr.ErrorForCode(got.Topics[0].ErrorCode)
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	return err
}

func deleteTopic(ctx context.Context, client *kgo.Client, name string) error {
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = &name
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Topics, req.TopicNames = append(req.Topics, topic), []string{name}
	got, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	err = kerr.ErrorForCode(got.Topics[0].ErrorCode)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	return err
}
