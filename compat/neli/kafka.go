package neli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// logSuffix is appended to LeaderTopic for the topic of the leases. LeaderTopic itself may have any
// number of partitions and any retention, so it cannot hold them.
const logSuffix = ".log"

// kafka is the ground of every election outside of tests.
type kafka struct {
	connection []kgo.Opt
	topic      string
	answer     time.Duration
	group      group.Config
	log        *slog.Logger
	store      *kafkalog.Store // nil before open
}

func newKafka(c Config, p properties) *kafka {
	timeout := *c.HeartbeatTimeout
	g := group.Config{
		Name: c.LeaderGroupID, Topic: c.LeaderTopic, Instance: p.instance,
		SessionTimeout: sessions * timeout, Heartbeat: heartbeat(c, p), BesideGoNELI: !c.WithoutGoNELI,
		Logger: c.Scribe.With("name", c.Name),
	}
	return &kafka{
		connection: append(append([]kgo.Opt{}, p.connection...), c.ClientOptions...),
		topic:      c.LeaderTopic + logSuffix, answer: answerWithin(leaseFor(timeout)), group: g, log: c.Scribe,
	}
}

func (k *kafka) open(ctx context.Context) (driver.Store, error) {
	s, err := kafkalog.Open(ctx, k.connection, k.topic, kafkalog.WithTimeout(k.answer))
	if err != nil {
		return nil, err
	}
	k.store = s
	return s, nil
}

func (k *kafka) join(ctx context.Context) (member, error) {
	return group.Join(ctx, k.connection, k.group)
}

func (k *kafka) metadata() map[string]string { return group.Metadata(k.group.Name) }

func (k *kafka) check(leader tenure.Leader) error {
	return group.CheckLeader(k.group.Name, leader.Metadata)
}

// passing reports whether another try may succeed: after errors of the network, after those that
// Kafka itself calls retriable, and while the group has members of another kind, such as goNELI
// processes that are about to be stopped. An operator must fix the others.
func (k *kafka) passing(err error) bool {
	if errors.Is(err, driver.ErrDenied) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, kerr.InconsistentGroupProtocol) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) ||
		kgo.IsRetryableBrokerErr(err) || kerr.IsRetriable(err)
}

func (k *kafka) close() error {
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}
