// Package broker has the code for brokers that the packages on Kafka share.
package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// errOthers names the options that would change the kind of a client.
var errOthers = errors.New("leave out kgo.ConsumerGroup and kgo.TransactionalID: this package sets them itself where it needs them")

// Connect makes a client with a user's options of a connection, and with others that the user
// cannot change.
func Connect(connection []kgo.Opt, held ...kgo.Opt) (*kgo.Client, error) {
	opts := append([]kgo.Opt{}, connection...)
	client, err := kgo.NewClient(append(append(opts, held...), kgo.DisableClientMetrics())...)
	if err != nil {
		return nil, err
	}
	if err := plain(client); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

func plain(client *kgo.Client) error {
	group, _ := client.OptValue(kgo.ConsumerGroup).(string)
	transaction, _ := client.OptValue(kgo.TransactionalID).(string)
	if group != "" || transaction != "" {
		return errOthers
	}
	return nil
}

// ErrAnswer reports that a broker violates the protocol.
var ErrAnswer = errors.New("the broker answered something else than it was asked")

// refusals are the answers that mean that a right is missing. A broker gives them before it does
// anything.
var refusals = []*kerr.Error{
	kerr.TopicAuthorizationFailed,
	kerr.GroupAuthorizationFailed,
	kerr.TransactionalIDAuthorizationFailed,
	kerr.ClusterAuthorizationFailed,
	kerr.SaslAuthenticationFailed,
	kerr.UnsupportedSaslMechanism,
	kerr.IllegalSaslState,
}

// IsAny reports whether an error is one of several.
func IsAny[E error](err error, of []E) bool {
	return slices.ContainsFunc(of, func(e E) bool { return errors.Is(err, e) })
}

// IsRefusal reports whether an error is an answer that an operator must act on, by granting a right
// or a log-in.
func IsRefusal(err error) bool { return IsAny(err, refusals) }

// Denied adds driver.ErrDenied to errors that mean it.
func Denied(err error) error {
	if IsRefusal(err) && !errors.Is(err, driver.ErrDenied) {
		return fmt.Errorf("%w (%w)", driver.ErrDenied, err)
	}
	return err
}

// UsualReplicas is how many brokers keep a topic, if there are so many.
const UsualReplicas = 3

// Topic is a topic to create, with one partition.
type Topic struct {
	Name string
	// Replicas is on how many brokers; 0 means the usual number, or all brokers where there are
	// fewer.
	Replicas int
	// Settings are those of a topic with so many replicas.
	Settings func(replicas int) map[string]string
}

// ErrMayNotCreate reports that a topic is missing and that the user has no right to create it.
var ErrMayNotCreate = errors.New("it does not exist, and the user may not create it")

// Create makes the topic. It is not an error if another process has made it in the meantime. Some
// brokers may learn of it later.
func (t Topic) Create(ctx context.Context, client *kgo.Client, timeout time.Duration) error {
	if t.Replicas == 0 {
		t.Replicas = min(UsualReplicas, len(client.DiscoveredBrokers()))
	}
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.Name, 1, int16(t.Replicas)
	for name, value := range t.settings(t.Replicas) {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = name, &value
		topic.Configs = append(topic.Configs, c)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), int32(timeout.Milliseconds())
	answer, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("create it: %w", err)
	}
	if len(answer.Topics) != 1 {
		return ErrAnswer
	}
	return t.judge(&answer.Topics[0])
}

func (t Topic) judge(answer *kmsg.CreateTopicsResponseTopic) error {
	switch err := kerr.ErrorForCode(answer.ErrorCode); {
	case err == nil, errors.Is(err, kerr.TopicAlreadyExists):
		return nil
	case IsRefusal(err):
		return fmt.Errorf("%w: grant Create on it, or create it with %s: %w", ErrMayNotCreate, t.Recipe(""), err)
	case answer.ErrorMessage != nil:
		return fmt.Errorf("create it: %s: %w", *answer.ErrorMessage, err)
	default:
		return fmt.Errorf("create it: %w", err)
	}
}

// Recipe returns the command for an operator with the same settings. At, if not empty, comes first:
// how the brokers are reached.
func (t Topic) Recipe(at string) string {
	if at != "" {
		at += " "
	}
	line := fmt.Sprintf("kafka-topics.sh %s--create --topic %s --partitions 1 --replication-factor %d", at, t.Name, UsualReplicas)
	set := t.settings(UsualReplicas)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		line += " --config " + name + "=" + set[name]
	}
	return line
}

func (t Topic) settings(replicas int) map[string]string {
	if t.Settings == nil {
		return nil
	}
	return t.Settings(replicas)
}
