package neli

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/clientprops"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	brokers      = "bootstrap.servers"
	brokersAlias = "metadata.broker.list"
)

// properties holds the parsed KafkaConfig.
type properties struct {
	connection []kgo.Opt
	silence    time.Duration     // max.poll.interval.ms
	heartbeat  time.Duration     // heartbeat.interval.ms; 0 if not given
	instance   string            // group.instance.id
	needless   map[string]string // accepted without effect, and why
}

// The default and the maximum of max.poll.interval.ms are librdkafka's.
const (
	defaultSilence = 5 * time.Minute
	mostSilence    = 24 * time.Hour
)

// sort separates the properties of a connection, which package clientprops knows, from those of
// consumers and producers.
func sort(given KafkaConfigMap) (properties, error) {
	p := properties{silence: defaultSilence, needless: map[string]string{}}
	rest := map[string]string{}
	var bad []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value, err := text(given[name])
		switch {
		case err != nil:
		case own[name] != "":
			err = fmt.Errorf("is set by %s (leave it out)", own[name])
		case refused[name] != "":
			err = fmt.Errorf("is not supported (%s)", refused[name])
		case needless[name] != "":
			p.needless[name] = needless[name]
		case name == "max.poll.interval.ms":
			p.silence, err = millis(value, mostSilence)
		case name == "heartbeat.interval.ms":
			p.heartbeat, err = millis(value, time.Hour)
		case name == "group.instance.id":
			p.instance, err = value, legal(value)
		default:
			rest[name] = value
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("%s %w", name, err))
		}
	}
	var err error
	p.connection, err = clientprops.Options(rest)
	if err = errors.Join(errors.Join(bad...), err); err != nil {
		return properties{}, fmt.Errorf("KafkaConfig: %w", err)
	}
	return p, nil
}

// text returns a value as it would be written in a file of properties.
func text(value interface{}) (string, error) {
	switch reflect.ValueOf(value).Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return fmt.Sprint(value), nil
	}
	return "", fmt.Errorf("is a %T (give a string, a number or a boolean)", value)
}

func legal(name string) error {
	if name == "" || strange.MatchString(name) || len(name) > maxTopic {
		return errors.New("is not of letters, digits and . _ - alone")
	}
	return nil
}

func millis(value string, most time.Duration) (time.Duration, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 || n > most.Milliseconds() {
		return 0, fmt.Errorf("is no number of milliseconds from 1 to %d", most.Milliseconds())
	}
	return time.Duration(n) * time.Millisecond, nil
}

// report logs properties without effect, once.
func (p properties) report(log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(p.needless)) {
		log.Info("neli: a property of KafkaConfig has no effect", "property", name, "because", p.needless[name])
	}
}

// own are the properties that are an error because goNELI sets them itself, also under their other
// names. Each value names what sets the property.
var own = map[string]string{
	"group.id":               "LeaderGroupID",
	"enable.auto.commit":     "the election, which commits no offsets",
	"session.timeout.ms":     "HeartbeatTimeout, to three times as much",
	"delivery.timeout.ms":    "HeartbeatTimeout",
	"message.timeout.ms":     "HeartbeatTimeout",
	"linger.ms":              "the election, to 0",
	"queue.buffering.max.ms": "the election, to 0",
}

// refused are the properties that are an error because a program may rely on them and this package
// has nothing like them, each with a remedy. Package clientprops refuses further ones.
var refused = map[string]string{
	"transactional.id":     "an election is no transaction; package fenced has a producer that is bound to a term",
	"plugin.library.paths": "there are no plug-ins",
	"default.topic.config": "give its properties one by one",
	"ssl.crl.location":     "add to ClientOptions a kgo.DialTLSConfig that checks the list",
	"ssl.sigalgs.list":     "add a kgo.DialTLSConfig to ClientOptions",
	"ssl.curves.list":      "add a kgo.DialTLSConfig to ClientOptions",
}

// Reasons why a property has no effect.
const (
	notPolled   = "heartbeats are neither queued nor polled: the log is followed as it grows"
	notCommits  = "no offsets are stored"
	allReplicas = "each write waits for the replicas that min.insync.replicas asks for, and is one request that is never repeated blindly"
	ownPace     = "the lease decides how long to wait and when to try again"
	ownGroup    = "members of a group must agree: the group's own strategy does not move leadership when a member joins"
	ownClient   = "it is about librdkafka itself"
	ownLogs     = "it is about librdkafka's logs; add a kgo.WithLogger or hooks to ClientOptions"
	leaderReads = "an election reads from the partition's leader"
)

// needless are the properties of librdkafka and its Go package that are accepted and have no
// effect. Each is about the consumer and the producer that goNELI had.
var needless = invert(map[string][]string{
	notPolled: {
		"auto.offset.reset", "check.crcs", "consume.callback.max.messages", "enable.partition.eof", "fetch.error.backoff.ms",
		"fetch.max.bytes", "fetch.message.max.bytes", "fetch.min.bytes", "fetch.wait.max.ms", "isolation.level",
		"max.partition.fetch.bytes", "queued.max.messages.kbytes", "queued.min.messages", "receive.message.max.bytes",
	},
	notCommits: {"auto.commit.enable", "auto.commit.interval.ms", "enable.auto.offset.store", "offset.store.method", "offset.store.path", "offset.store.sync.interval.ms"},
	allReplicas: {
		"acks", "batch.num.messages", "batch.size", "compression.codec", "compression.level", "compression.type",
		"delivery.report.only.error", "enable.gapless.guarantee", "enable.idempotence", "max.in.flight",
		"max.in.flight.requests.per.connection", "message.copy.max.bytes", "message.max.bytes", "message.send.max.retries",
		"msg_order_cmp", "partitioner", "produce.offset.report", "queue.buffering.backpressure.threshold",
		"queue.buffering.max.kbytes", "queue.buffering.max.messages", "queuing.strategy", "request.required.acks", "retries",
		"sticky.partitioning.linger.ms",
	},
	ownPace: {
		"coordinator.query.interval.ms", "reconnect.backoff.jitter.ms", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
		"request.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms", "socket.blocking.max.ms", "socket.connection.setup.timeout.ms",
		"socket.max.fails", "socket.timeout.ms", "metadata.request.timeout.ms", "topic.metadata.propagation.max.ms",
		"topic.metadata.refresh.fast.cnt", "topic.metadata.refresh.fast.interval.ms", "topic.metadata.refresh.interval.ms",
		"topic.metadata.refresh.sparse", "transaction.timeout.ms",
	},
	ownGroup: {"partition.assignment.strategy", "group.protocol.type"},
	ownClient: {
		"allow.auto.create.topics", "api.version.fallback.ms", "api.version.request", "api.version.request.timeout.ms", "broker.address.family",
		"broker.address.ttl", "broker.version.fallback", "builtin.features", "go.application.rebalance.enable",
		"go.batch.producer", "go.delivery.reports", "go.events.channel.enable", "go.events.channel.size",
		"go.produce.channel.size", "go.delivery.report.fields", "internal.termination.signal", "opaque",
		"socket.keepalive.enable", "socket.nagle.disable", "socket.receive.buffer.bytes", "socket.send.buffer.bytes",
		"statistics.interval.ms", "topic.blacklist",
	},
	ownLogs: {
		"debug", "go.logs.channel.enable", "log.connection.close", "log.queue", "log.thread.name", "log_level",
	},
	leaderReads: {"client.rack"},
})

func invert(lists map[string][]string) map[string]string {
	reasons := map[string]string{}
	for why, names := range lists {
		for _, name := range names {
			reasons[name] = why
		}
	}
	return reasons
}
