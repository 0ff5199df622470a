package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Errors of Open to branch on, besides driver.ErrDenied.
var (
	// ErrUnsafe: the topic exists, and its settings could lead to two leaders, or prevent every
	// election. The text lists each of them with its remedy.
	ErrUnsafe = errors.New("the topic is unsafe for elections")
	// ErrMayNotCreate: there is no such topic, and the user may not create it.
	ErrMayNotCreate = broker.ErrMayNotCreate
)

// Open returns the elections in a topic, over a client of its own with the given options of the
// connection, such as kgo.SeedBrokers, kgo.DialTLSConfig, kgo.SASL, kgo.ClientID, a logger or
// hooks. The store sets or ignores all other options; it refuses those of consumer groups and
// transactions.
//
// Open creates a topic that does not exist, as the package comment says. It refuses an existing
// topic whose settings could lead to two leaders, or prevent every election. Without the right to
// read the settings it uses the topic as it is, and Inspect names the missing right. Open returns
// when it has read the log, which takes a few requests, or when the context ends.
//
// It returns an error that wraps driver.ErrDenied if the brokers refuse the user or a right is
// missing (and also ErrMayNotCreate if the right to create the topic is missing), ErrUnsafe, and
// any other error if no broker answers, the topic is in use for something else, or an option is
// wrong. The caller must close the store.
func Open(ctx context.Context, connection []kgo.Opt, topic string, opts ...Option) (*Store, error) {
	set, err := settle(opts)
	if err != nil {
		return nil, fmt.Errorf("kafkalog: %w", err)
	}
	client, err := connect(connection, set.timeout)
	if err != nil {
		return nil, fmt.Errorf("kafkalog: the client's options: %w", err)
	}
	s := newStore(client, topic, set)
	if err := s.open(ctx, set); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("kafkalog: open topic %s: %w", topic, broker.Denied(err))
	}
	return s, nil
}

func newStore(client *kgo.Client, topic string, set settings) *Store {
	s := &Store{
		wire:    &wire{client: client, topic: topic, timeout: set.timeout},
		client:  client,
		changed: make(chan struct{}),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// connect sets the options that decide how long the client keeps a broker that does not answer.
func connect(connection []kgo.Opt, timeout time.Duration) (*kgo.Client, error) {
	held := []kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.DialTimeout(timeout / 2),
		kgo.RequestTimeoutOverhead(timeout / 2),
		kgo.RetryTimeout(timeout),
		kgo.RequestRetries(2),
		kgo.RetryBackoffFn(func(int) time.Duration { return firstPause }),
		kgo.MetadataMinAge(firstPause),
	}
	return broker.Connect(connection, held...)
}

func (s *Store) open(ctx context.Context, set settings) error {
	switch _, err := s.wire.metadata(ctx); {
	case errors.Is(err, kerr.UnknownTopicOrPartition) && set.create:
		if err := s.create(ctx, set.replicas); err != nil {
			return err
		}
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("it does not exist; create it with %s: %w", CreateCommand(s.wire.topic, ""), err)
	case err != nil:
		return err
	}
	// Check a new topic, too: another process may have created it first.
	if err := s.refuseUnsafe(ctx); err != nil {
		return err
	}
	s.work.Go(func() { s.follow(s.ctx) })
	if _, err := s.current(ctx); err != nil {
		return err
	}
	return s.tally().refuseForeign()
}

// refuseUnsafe accepts a topic whose settings it may not read.
func (s *Store) refuseUnsafe(ctx context.Context) error {
	v, err := s.surveyNew(ctx)
	switch {
	case errors.Is(broker.Denied(err), driver.ErrDenied):
		return nil
	case err != nil:
		return err
	}
	for _, f := range v.findings() {
		if f.Severity == driver.Unsafe {
			err = errors.Join(err, errors.New(f.String()))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	return nil
}

// surveyNew goes on while the asked brokers do not know the topic, which others do: it may have
// just been created.
func (s *Store) surveyNew(ctx context.Context) (survey, error) {
	ctx, cancel := context.WithTimeout(ctx, s.wire.timeout)
	defer cancel()
	for p := (pause{}); ; p.sleep(ctx, lastPause) {
		v, err := s.survey(ctx)
		if !errors.Is(err, kerr.UnknownTopicOrPartition) || ctx.Err() != nil {
			return v, err
		}
	}
}

const (
	// defaultTimeout is how long a broker may take for an answer.
	defaultTimeout = 2 * time.Second
	shortTimeout   = 200 * time.Millisecond
	longTimeout    = time.Minute
)

// Option changes how Open makes a store.
type Option func(*settings)

type settings struct {
	timeout  time.Duration
	replicas int
	create   bool
}

// WithTimeout sets how long a broker may take for an answer before the store gives up its
// connection: 200 ms to 1 min; the default is 2 s. Half of it is for the replicas to store a write.
// A lease should be at least twice as long. Calls still end with their contexts.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithReplicas sets how many brokers keep a topic that Open creates. The default, also for 0, is
// three, or all brokers if there are fewer. With fewer than three, one broker suffices to store a
// write, so its loss may take writes back. A negative number makes Open fail.
func WithReplicas(n int) Option { return func(s *settings) { s.replicas = n } }

// WithoutCreate makes Open fail if the topic does not exist.
func WithoutCreate() Option { return func(s *settings) { s.create = false } }

func settle(opts []Option) (settings, error) {
	s := settings{timeout: defaultTimeout, create: true}
	for _, o := range opts {
		o(&s)
	}
	var bad []error
	if s.timeout < shortTimeout || s.timeout > longTimeout {
		bad = append(bad, fmt.Errorf("a timeout of %v is not between %v and %v", s.timeout, shortTimeout, longTimeout))
	}
	if s.replicas < 0 {
		bad = append(bad, fmt.Errorf("%d replicas: the number must not be negative", s.replicas))
	}
	return s, errors.Join(bad...)
}

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
