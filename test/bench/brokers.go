package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokers are a Kafka of three: processes of the real one, or kfake in the process of the bench.
type brokers struct {
	*kafkad.Cluster // nil: kfake
	fake            *kfake.Cluster
	addresses       []string
	name            string

	mu     sync.Mutex
	topics int
	homes  []string // topics that have a preferred broker each
}

// kafkas are those that were started.
type kafkas struct {
	mu         sync.Mutex
	real, fake *brokers
}

// brokersWanted reports whether there are real brokers: a quick run has them if it is asked to.
func (b *bench) brokersWanted() bool { return !b.quick || b.wants }

// realBrokers are started at the first need, and warmed up: what runs for the first time in them is translated first, and a
// write takes 20 ms then.
func (b *bench) realBrokers() (*brokers, error) {
	b.kafka.mu.Lock()
	defer b.kafka.mu.Unlock()
	if b.kafka.real == nil {
		c, err := kafkad.Up(b.ctx, filepath.Join(b.dir, "kafka"), false)
		if err != nil {
			return nil, err
		}
		b.kafka.real = &brokers{Cluster: c, addresses: c.Seeds(), name: "three real brokers"}
		if err := b.warm(b.kafka.real); err != nil {
			return nil, err
		}
	}
	return b.kafka.real, nil
}

func (b *bench) warm(k *brokers) error {
	topic, err := k.newTopic(b.ctx)
	if err != nil {
		return err
	}
	s, err := k.open(b.ctx, topic)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	_, _, err = b.operations(s, b.pick(1000, 2000))
	return err
}

func (b *bench) fakeBrokers() (*brokers, error) {
	b.kafka.mu.Lock()
	defer b.kafka.mu.Unlock()
	if b.kafka.fake == nil {
		c, err := kfake.NewCluster(kfake.NumBrokers(kafkad.Brokers), kfake.GroupMinSessionTimeout(time.Second))
		if err != nil {
			return nil, err
		}
		b.kafka.fake = &brokers{fake: c, addresses: c.ListenAddrs(), name: "kfake"}
	}
	return b.kafka.fake, nil
}

// usualBrokers are the real ones, but in a quick run kfake.
func (b *bench) usualBrokers() (*brokers, error) {
	if b.quick {
		return b.fakeBrokers()
	}
	return b.realBrokers()
}

func (k *kafkas) end() {
	if k.real != nil {
		_ = k.real.End()
	}
	if k.fake != nil {
		k.fake.fake.Close()
	}
}

// newTopic makes one for elections.
func (k *brokers) newTopic(ctx context.Context) (string, error) {
	k.mu.Lock()
	k.topics++
	topic := fmt.Sprintf("elections-%d", k.topics)
	k.mu.Unlock()
	s, err := k.open(ctx, topic, kafkalog.WithTimeout(attempt)) // brokers that just started take their time
	if err != nil {
		return "", err
	}
	return topic, s.Close()
}

func (k *brokers) open(ctx context.Context, topic string, opts ...kafkalog.Option) (*kafkalog.Store, error) {
	return kafkalog.Open(ctx, []kgo.Opt{kgo.SeedBrokers(k.addresses...)}, topic, opts...)
}

// ask asks with a client of its own until it succeeds.
func (k *brokers) ask(ctx context.Context, what string, question func(context.Context, *kgo.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(k.addresses...), kgo.DialTimeout(time.Second),
		kgo.RequestTimeoutOverhead(2*time.Second), kgo.RetryTimeout(5*time.Second), kgo.MetadataMinAge(askAgain))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		err := question(ctx, client)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		}
	}
}

// attempt is the most that a broker gets for one answer.
const attempt = time.Minute

// askAgain is the time from one question to the next.
const askAgain = 50 * time.Millisecond
