package neli

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog/clientprops"
	"github.com/tenure-go/tenure/nomination"
	"github.com/tenure-go/tenure/timing"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Duration returns a pointer to d, for the fields of Config.
func Duration(d time.Duration) *time.Duration { return &d }

// KafkaConfigMap holds properties of Kafka's clients by their names. Values are strings, numbers
// and booleans.
type KafkaConfigMap map[string]interface{}

// Config holds the settings of an instance. Each zero value is a default; SetDefaults fills them
// in. The fields after HeartbeatTimeout are not goNELI's.
type Config struct {
	// KafkaConfig holds the properties of the connection to the brokers, by the names of librdkafka
	// or of the Java clients. bootstrap.servers is localhost:9092 if not given. A property that is
	// unknown or not supported is an error. One without effect is logged once, with the reason.
	KafkaConfig KafkaConfigMap
	// LeaderTopic is the topic whose partition 0 the group assigns to one member. Default:
	// LeaderGroupID + ".neli". The leases are in LeaderTopic + ".log". Both are created if they do
	// not exist.
	LeaderTopic string
	// LeaderGroupID is the consumer group of the candidates, and the name of the election. Default:
	// the file name of the program.
	LeaderGroupID string
	// Scribe logs all events. Nil: slog.Default(). FromScribe converts a Scribe of goNELI's.
	Scribe *slog.Logger
	// Name is the name of this process, for people to read; without "%". Default: host, process id
	// and time. It is published while the process leads.
	Name string
	// PollDuration is accepted and has no effect: Pulse does not poll.
	PollDuration *time.Duration
	// MinPollInterval is the interval of Deadline. Default: 100 ms. Pulse sees changes at once in
	// any case.
	MinPollInterval *time.Duration
	// HeartbeatTimeout is how long a leader keeps leading after it sent the last renewal that was
	// confirmed. Default: 5 s; from 1 s to 10 min. The session of the group is three times as long.
	HeartbeatTimeout *time.Duration

	// Precedence lets other candidates than the partition's owner lead, too, once there was no
	// leader for this long. So the group gets a leader even if the owner hangs. Nil: only the owner
	// may lead. See WithoutGoNELI.
	Precedence *time.Duration
	// WithoutGoNELI means that goNELI processes no longer join the group. Until it is set,
	// Precedence lets a candidate lead only while the group's coordinator confirms that it is a
	// member, because then brokers admit no goNELI process. So there is no leader while the
	// coordinator does not answer. Set it in all processes once the last goNELI process is gone for
	// good.
	WithoutGoNELI bool
	// ClientOptions are more options of the clients, for settings without a property: a dialer,
	// TLS, a SASL mechanism, hooks.
	ClientOptions []kgo.Opt
	// Configure is called with the finished settings of the election, and may change them. Use it
	// for settings that goNELI does not have, such as Address, Metadata, StopWithin or OnEvent.
	Configure func(*tenure.Config)
}

// The defaults of Config.
const (
	DefaultPollDuration     = time.Millisecond
	DefaultMinPollInterval  = 100 * time.Millisecond
	DefaultHeartbeatTimeout = 5 * time.Second
)

// SetDefaults fills in the defaults.
func (c *Config) SetDefaults() {
	c.KafkaConfig = maps.Clone(c.KafkaConfig)
	if c.KafkaConfig == nil {
		c.KafkaConfig = KafkaConfigMap{}
	}
	_, named := c.KafkaConfig[brokers]
	if _, aliased := c.KafkaConfig[brokersAlias]; !named && !aliased {
		c.KafkaConfig[brokers] = "localhost:9092"
	}
	orText(&c.LeaderGroupID, func() string { return Sanitise(filepath.Base(os.Args[0])) })
	orText(&c.LeaderTopic, func() string { return c.LeaderGroupID + ".neli" })
	orText(&c.Name, defaultName)
	if c.Scribe == nil {
		c.Scribe = slog.Default()
	}
	orDuration(&c.PollDuration, DefaultPollDuration)
	orDuration(&c.MinPollInterval, DefaultMinPollInterval)
	orDuration(&c.HeartbeatTimeout, DefaultHeartbeatTimeout)
}

func orText(s *string, by func() string) {
	if *s == "" {
		*s = by()
	}
}

func orDuration(d **time.Duration, by time.Duration) {
	if *d == nil {
		*d = &by
	}
}

func defaultName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%.200s_%d_%d", Sanitise(host), os.Getpid(), time.Now().Unix())
}

var strange = regexp.MustCompile(`[^a-zA-Z0-9._-]`)

// Sanitise replaces each character that is not allowed in the names of Kafka's topics and groups by
// "_".
func Sanitise(name string) string { return strange.ReplaceAllString(name, "_") }

// Validate returns an error that names each setting that is wrong or missing. Call SetDefaults
// first: Validate itself fills in no defaults.
func (c Config) Validate() error {
	_, err := c.check()
	return err
}

// check validates the Config and also returns its properties.
func (c Config) check() (properties, error) {
	props, err := sort(c.KafkaConfig)
	err = errors.Join(err, c.checkNames(), atLeast("PollDuration", c.PollDuration, time.Millisecond),
		atLeast("MinPollInterval", c.MinPollInterval, time.Millisecond),
		atLeast("HeartbeatTimeout", c.HeartbeatTimeout, leastTimeout))
	if c.HeartbeatTimeout != nil && *c.HeartbeatTimeout > mostTimeout {
		err = errors.Join(err, fmt.Errorf("HeartbeatTimeout is %v; it must be at most %v", *c.HeartbeatTimeout, mostTimeout))
	}
	if c.Precedence != nil {
		err = errors.Join(err, atLeast("Precedence", c.Precedence, time.Millisecond))
	}
	if err != nil {
		return properties{}, fmt.Errorf("neli: %w", err)
	}
	return props, nil
}

const (
	maxTopic = 249 // Kafka's own limit
	maxName  = 256 // of a candidate's ID
)

func (c Config) checkNames() error {
	var bad []error
	for _, f := range []struct{ name, value string }{{"LeaderTopic", c.LeaderTopic}, {"LeaderGroupID", c.LeaderGroupID}} {
		if f.value == "" || strange.MatchString(f.value) {
			bad = append(bad, fmt.Errorf("%s is %q; it must be of letters, digits and . _ -", f.name, f.value))
		}
	}
	if len(c.LeaderTopic) > maxTopic-len(logSuffix) {
		bad = append(bad, fmt.Errorf("LeaderTopic is longer than %d characters", maxTopic-len(logSuffix)))
	}
	if c.Name == "" || len(c.Name) > maxName || strings.Contains(c.Name, "%") {
		bad = append(bad, fmt.Errorf("Name is %q; it must have 1 to %d bytes and no %%", c.Name, maxName))
	}
	if c.Scribe == nil {
		bad = append(bad, errors.New("Scribe is nil"))
	}
	return errors.Join(bad...)
}

func atLeast(field string, d *time.Duration, least time.Duration) error {
	switch {
	case d == nil:
		return fmt.Errorf("%s is not given", field)
	case *d < least:
		return fmt.Errorf("%s is %v; it must be at least %v", field, *d, least)
	}
	return nil
}

// String shows the settings; of KafkaConfig only the names, since there may be a password among the
// values.
func (c Config) String() string {
	return fmt.Sprintf("Config[KafkaConfig=%v, LeaderTopic=%s, LeaderGroupID=%s, Name=%s, PollDuration=%s, MinPollInterval=%s, HeartbeatTimeout=%s]",
		slices.Sorted(maps.Keys(c.KafkaConfig)), c.LeaderTopic, c.LeaderGroupID, c.Name,
		show(c.PollDuration), show(c.MinPollInterval), show(c.HeartbeatTimeout))
}

func show(d *time.Duration) string {
	if d == nil {
		return "default"
	}
	return d.String()
}

// settings returns the settings of the election.
func (s *session) settings() tenure.Config {
	n := s.n
	cfg := tenure.Config{
		ID: n.cfg.Name, Lease: leaseFor(*n.cfg.HeartbeatTimeout), FinishWithin: n.props.silence,
		Nomination: nomination.Config{Only: n.cfg.Precedence == nil}, Logger: n.log,
	}
	if n.cfg.Precedence != nil {
		cfg.Nomination.Precedence = *n.cfg.Precedence
	}
	if n.cfg.Configure != nil {
		n.cfg.Configure(&cfg)
	}
	// Configure cannot replace the group, which may also keep a leader apart from goNELI processes.
	cfg.Nomination.Nominator = func(string) nomination.Nominator { return s.member }
	cfg.Metadata = merge(cfg.Metadata, n.ground.metadata())
	also := cfg.OnEvent
	cfg.OnEvent = func(e tenure.Event) {
		s.checkLeader(e)
		if also != nil {
			also(e)
		}
	}
	return cfg
}

func merge(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return all
}

// checkLeader ends the session with a fatal error if the leader is of another group.
func (s *session) checkLeader(e tenure.Event) {
	if e.Kind != tenure.EventLeader || !e.Leader.Exists() {
		return
	}
	if err := s.n.ground.check(e.Leader); err != nil {
		s.end(err)
	}
}

const (
	// leastTimeout keeps the lease above the shortest that kafkalog allows. mostTimeout keeps the
	// session at the longest that brokers allow by default.
	leastTimeout = time.Second
	mostTimeout  = 10 * time.Minute
	// sessions is how many heartbeat timeouts a session of the group lasts.
	sessions = 3
	// beats is the number of the group's heartbeats in a session, unless heartbeat.interval.ms sets
	// it.
	beats = 5
	// leastAnswer and mostAnswer bound the time for a broker's answer: a third of the lease.
	leastAnswer = 200 * time.Millisecond
	mostAnswer  = 2 * time.Second
)

// leaseFor returns the lease that is the timeout plus the margin: a leader that is cut off stops
// after the timeout, and the margin is left. The margin depends on the lease, but grows far more
// slowly, so the loop ends.
func leaseFor(timeout time.Duration) time.Duration {
	lease := timeout.Truncate(time.Millisecond)
	for {
		longer := (timeout + timing.Margin(tenure.Config{Lease: lease})).Truncate(time.Millisecond)
		if longer <= lease {
			return lease
		}
		lease = longer
	}
}

func answerWithin(lease time.Duration) time.Duration {
	return min(max(lease/3, leastAnswer), mostAnswer)
}

// heartbeat returns the time between two requests of a member of the group: at most a third of the
// session.
func heartbeat(c Config, p properties) time.Duration {
	if p.heartbeat == 0 {
		return sessions * *c.HeartbeatTimeout / beats
	}
	return max(min(p.heartbeat, *c.HeartbeatTimeout), leastBeat)
}

// leastBeat is the least Heartbeat of package group.
const leastBeat = 50 * time.Millisecond

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
