package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/twmb/franz-go/pkg/kgo"
)

// logSource is a client of Kafka for each topic.
type logSource struct {
	me     identity
	say    func(report)
	tally  *tally
	stores map[string]*kafkalog.Store
}

func openLogs(me identity, say func(report)) *logSource {
	say(report{What: connected, At: machine.Now()})
	return &logSource{me: me, say: say, tally: newTally(), stores: map[string]*kafkalog.Store{}}
}

// connection is how all clients of this process connect.
func (s *logSource) connection() []kgo.Opt {
	opts := []kgo.Opt{kgo.SeedBrokers(s.me.Brokers...), kgo.ClientID(s.me.ID), kgo.WithHooks(s.tally)}
	if len(s.me.Via) > 0 {
		opts = append(opts, kgo.Dialer(func(ctx context.Context, network, broker string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.me.Via[broker])
		}))
	}
	return opts
}

// open keeps the store of each topic.
func (s *logSource) open(c command) (driver.Store, error) {
	store := s.stores[c.Bucket]
	if store == nil {
		var err error
		err = patiently(context.Background(), func(ctx context.Context) error {
			store, err = kafkalog.Open(ctx, s.connection(), c.Bucket)
			return err
		})
		if err != nil {
			return nil, err
		}
		s.stores[c.Bucket] = store
	}
	if c.Quiet {
		return store, nil
	}
	return observedLog{store, s.say}, nil
}

// configure lets a consumer group of the election's name nominate, if that is wanted. It is left when the campaign ends.
func (s *logSource) configure(ctx context.Context, c command, election string, cfg *tenure.Config) error {
	if c.Session == 0 {
		return nil
	}
	var g *group.Group
	err := patiently(ctx, func(ctx context.Context) (err error) {
		g, err = group.Join(ctx, s.connection(), group.Config{Name: election, SessionTimeout: c.Session})
		return err
	})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = g.Close() })
	cfg.Nominator, cfg.NomineeOnly, cfg.Metadata = g, c.Only, group.Metadata(election)
	return nil
}

// patiently tries again where a busy broker gave no answer in time. Another error is one.
func patiently(ctx context.Context, try func(context.Context) error) error {
	for {
		err := try(ctx)
		var late net.Error
		if ctx.Err() != nil || !errors.As(err, &late) || !late.Timeout() {
			return err
		}
		fmt.Fprintln(os.Stderr, "  again, for", err)
	}
}

func (s *logSource) requests() map[string]int { return s.tally.all() }

// observedLog is a topic whose writes are reported.
type observedLog struct {
	*kafkalog.Store
	say func(report)
}

// CompareAndSwap is the store's, between two reports.
func (o observedLog) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return swap(ctx, o.Store, o.say, key, prev, value)
}
