package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Join becomes a member of a consumer group, over a client of its own that has the connection
// options given: kgo.SeedBrokers, kgo.DialTLSConfig, kgo.SASL, kgo.ClientID, a logger, hooks. The
// member sets all other options itself or does without them; options of consumer groups and
// transactions are refused. A topic that does not exist is created.
//
// It returns when the group's coordinator has accepted this process as a future member, or after a
// third of SessionTimeout if the coordinator does not answer. Then the member goes on trying, and
// Err returns the reason. In this time there is no nominee, and the election goes on without one,
// unless its Config is NomineeOnly.
//
// It returns an error that wraps driver.ErrDenied if the brokers refuse the user or a right is
// missing, and any other error if the Config is wrong, no broker answers, the topic does not exist
// and cannot be created, the group has members of another kind, or ctx ends. The caller closes the
// group.
func Join(ctx context.Context, connection []kgo.Opt, cfg Config) (*Group, error) {
	cfg, err := cfg.settle()
	if err != nil {
		return nil, fmt.Errorf("group: %w", err)
	}
	client, err := connect(connection, cfg)
	if err != nil {
		return nil, fmt.Errorf("group %s: the client's options: %w", cfg.Name, err)
	}
	g := newGroup(client, cfg)
	if err := g.enter(ctx); err != nil {
		_ = g.Close()
		return nil, fmt.Errorf("group %s: %w", cfg.Name, err)
	}
	return g, nil
}

// connect sets the options that decide how long the client keeps a broker that does not answer.
func connect(connection []kgo.Opt, cfg Config) (*kgo.Client, error) {
	timeout := cfg.timeout()
	held := []kgo.Opt{
		kgo.DialTimeout(timeout),
		kgo.RequestTimeoutOverhead(timeout),
		kgo.RetryTimeout(timeout),
		kgo.RequestRetries(2),
		kgo.RetryBackoffFn(func(int) time.Duration { return timeout / 20 }),
		kgo.MetadataMinAge(timeout / 20),
	}
	return broker.Connect(connection, held...)
}

func (g *Group) enter(ctx context.Context) error {
	if err := within(ctx, g.client.Ping); err != nil {
		return remedy(g.cfg, err)
	}
	if err := within(ctx, g.seeTopic); err != nil {
		return fmt.Errorf("topic %s: %w", g.cfg.Topic, remedy(g.cfg, err))
	}
	g.work.Go(g.follow)
	g.work.Go(g.beat)
	go g.nomination.tell()
	return g.await(ctx)
}

// within ends with the context, which not all of the library's calls do. An abandoned call ends
// with the client.
func within(ctx context.Context, call func(context.Context) error) error {
	var calls abandon.Calls
	_, err := abandon.Run(ctx, &calls, func() (struct{}, error) { return struct{}{}, call(ctx) }, abandon.NoUndo)
	return err
}

// await waits for the coordinator's first answer.
func (g *Group) await(ctx context.Context) error {
	enough := time.NewTimer(g.cfg.SessionTimeout / 3)
	defer enough.Stop()
	look := time.NewTicker(g.cfg.pause())
	defer look.Stop()
	for {
		select {
		case <-g.met:
			return nil
		case <-enough.C:
			return nil
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), g.Err())
		case <-look.C:
			if err := g.Err(); hopeless(err) || errors.Is(err, driver.ErrDenied) {
				return err
			}
		}
	}
}
