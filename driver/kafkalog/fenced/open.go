package fenced

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Open obtains the producer of a term, over a client of its own with the options given: those of a
// connection, such as kgo.SeedBrokers, kgo.DialTLSConfig and kgo.SASL, and those of a producer,
// such as kgo.DefaultProduceTopic, kgo.ProducerBatchCompression, kgo.RecordPartitioner and
// kgo.TransactionTimeout. Options of consumer groups, and kgo.TransactionalID, are refused.
//
// When it returns nil, the producers of all earlier terms are fenced, and their open transactions
// are aborted, in all partitions. A reader of committed records then finds, up to the end, all
// records of earlier terms that there will ever be. Open waits for that as long as ctx and the term
// last. An error of the network, as while the coordinator of the transactional id is down, may be
// over when Open is called again.
//
// Open one Producer for a term, since a second one fences the first, and close it. Errors are as
// for Produce, and there are those of wrong options.
func Open(ctx context.Context, t driver.Term, connection []kgo.Opt, opts ...Option) (*Producer, error) {
	set, err := settle(t, opts)
	if err != nil {
		return nil, fmt.Errorf("fenced: %w", err)
	}
	p := &Producer{term: t, connection: connection, set: set, turn: make(chan struct{}, 1), leaving: make(chan struct{})}
	close(p.leaving)
	p.closing, p.close = context.WithCancel(context.Background())
	if err := t.Do(ctx, set.need, p.first); err != nil {
		_ = p.Close()
		return nil, explain(t, fmt.Errorf("fenced: open: %w", err))
	}
	return p, nil
}

// first sends a broker a first request before all others, because the client repeats failed
// requests for a while, including the log-in.
func (p *Producer) first(ctx context.Context) error {
	client, err := broker.Connect(p.connection)
	if err != nil {
		return fmt.Errorf("the client's options: %w", err)
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return classify(ended(ctx, err))
	}
	return p.obtain(ctx)
}

// connect makes a client. Options that the user may change come before the user's options, and all
// others after them.
func connect(connection []kgo.Opt, id string, hook kgo.Hook) (*kgo.Client, error) {
	opts := []kgo.Opt{
		kgo.DialTimeout(2 * time.Second),
		kgo.RequestTimeoutOverhead(5 * time.Second),
		// Until then the client looks for a moved partition at its old place.
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(tries)*20*time.Millisecond, 500*time.Millisecond)
		}),
	}
	opts = append(opts, connection...)
	return kgo.NewClient(append(opts,
		kgo.TransactionalID(id),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0), // a transaction has all its records at once
		kgo.WithHooks(hook),
	)...)
}
