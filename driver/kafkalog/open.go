package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
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

// Inspect checks the topic's settings and replicas, how long a record stays in the log, the
// timeout, and foreign records in the log. It writes nothing.
//
// It needs the right DescribeConfigs on the topic. Errors are as for Read.
func (s *Store) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	v, err := s.survey(ctx)
	if err != nil {
		return nil, fmt.Errorf("kafkalog: inspect topic %s: %w", s.wire.topic, broker.Denied(err))
	}
	v.lease, v.seen = lease, s.tally()
	found := slices.Concat(v.findings(), v.atPace(), v.atForeign())
	if lease < 2*s.wire.timeout {
		found = append(found, driver.Finding{
			Severity: driver.Advice, Setting: "timeout",
			Problem: fmt.Sprintf("a broker may take %v for an answer, which leaves a lease of %v no second attempt on a new connection", s.wire.timeout, lease),
			Remedy:  "open the store with a shorter timeout (kafkalog.WithTimeout), or take a longer lease",
		})
	}
	return found, nil
}

func (s *Store) survey(ctx context.Context) (survey, error) {
	t, err := s.wire.metadata(ctx)
	if err != nil {
		return survey{}, err
	}
	values, err := s.settings(ctx)
	if err != nil {
		return survey{}, err
	}
	v := survey{topic: s.wire.topic, values: values}
	for _, p := range t.Partitions {
		if p.Partition == partition {
			v.replicas = len(p.Replicas)
		}
	}
	return v, nil
}

// settings asks for the topic's settings, its own or the brokers' defaults.
func (s *Store) settings(ctx context.Context) (map[string]string, error) {
	answer, err := s.wire.anyone(ctx, func() kmsg.Request {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, s.wire.topic
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.Resources = append(req.Resources, r)
		return req
	})
	if err != nil {
		return nil, err
	}
	resources := answer.(*kmsg.DescribeConfigsResponse).Resources
	if len(resources) != 1 {
		return nil, broker.ErrAnswer
	}
	if err := kerr.ErrorForCode(resources[0].ErrorCode); err != nil {
		return nil, fmt.Errorf("its settings (grant DescribeConfigs on the topic): %w", err)
	}
	values := map[string]string{}
	for _, c := range resources[0].Configs {
		if c.Value != nil {
			values[c.Name] = *c.Value
		}
	}
	return values, nil
}

// survey is the knowledge of Inspect.
type survey struct {
	topic    string
	replicas int
	values   map[string]string
	lease    time.Duration
	seen     tally
}

func (v survey) findings() []driver.Finding {
	var all []driver.Finding
	for _, look := range []func() []driver.Finding{v.atCleanup, v.atAge, v.atSize, v.atReplicas, v.atUnclean, v.atBatches, v.atTimestamps} {
		all = append(all, look()...)
	}
	return all
}

// number returns a setting as a number; ok is false if the brokers did not report it.
func (v survey) number(name string) (n int64, ok bool) {
	n, err := strconv.ParseInt(v.values[name], 10, 64)
	return n, err == nil
}

func (v survey) find(s driver.Severity, setting, problem, value string) []driver.Finding {
	return []driver.Finding{{Severity: s, Setting: setting, Problem: problem, Remedy: fmt.Sprintf(
		"kafka-configs.sh --alter --entity-type topics --entity-name %s --add-config %s=%s", v.topic, setting, value)}}
}

func (v survey) atCleanup() []driver.Finding {
	if !strings.Contains(v.values["cleanup.policy"], "compact") {
		return nil
	}
	return v.find(driver.Unsafe, "cleanup.policy", "compaction refuses the records of elections, since they have no key, and removes records by which readers judge others", "delete")
}

// atAge: a leader's record lives only as long as its renewals; but a quiet topic is emptied below
// all members.
func (v survey) atAge() []driver.Finding {
	ms, ok := v.number("retention.ms")
	if !ok || ms < 0 {
		return nil
	}
	return v.find(driver.Unsafe, "retention.ms", fmt.Sprintf("records are removed %v after they were written, by the brokers' "+
		"clocks and whether they are in force or not", time.Duration(ms)*time.Millisecond), "-1")
}

func (v survey) atSize() []driver.Finding {
	size, ok := v.number("retention.bytes")
	switch {
	case !ok:
		return nil
	case size < 0:
		return v.find(driver.Warning, "retention.bytes", "the log grows for ever", fmt.Sprint(retentionBytes))
	case size < retentionBytes/4:
		return v.find(driver.Unsafe, "retention.bytes", fmt.Sprintf("%d bytes hold fewer records than a reader needs to tell "+
			"which of them count", size), fmt.Sprint(retentionBytes))
	}
	segment, ok := v.number("segment.bytes")
	if ok && segment > 4*retentionBytes {
		return v.find(driver.Advice, "segment.bytes", fmt.Sprintf("the log is cut by whole segments, so that it grows to %d bytes",
			size+segment), fmt.Sprint(segmentBytes))
	}
	return nil
}

func (v survey) atReplicas() []driver.Finding {
	inSync, ok := v.number("min.insync.replicas")
	switch {
	case v.replicas < 2:
		return []driver.Finding{{
			Severity: driver.Warning, Setting: "replication.factor",
			Problem: "there is one copy: while its broker is down there is no leader, and if it is lost so are all terms",
			Remedy:  "three brokers, and kafka-reassign-partitions.sh to give partition 0 of " + v.topic + " two replicas more",
		}}
	case ok && inSync < 2:
		return v.find(driver.Warning, "min.insync.replicas", "a write may be acknowledged while one broker alone has it: if that broker is lost, "+
			"the topic is unavailable or a term repeats", "2")
	case ok && int(inSync) >= v.replicas:
		return v.find(driver.Warning, "min.insync.replicas", "all replicas are needed for a write: any broker that is down "+
			"stops all elections", fmt.Sprint(v.replicas-1))
	}
	return nil
}

func (v survey) atUnclean() []driver.Finding {
	if v.values["unclean.leader.election.enable"] != "true" {
		return nil
	}
	return v.find(driver.Unsafe, "unclean.leader.election.enable", "a broker that lacks the latest records may become the "+
		"partition's leader: the latest records are lost, and terms that candidates have led may repeat", "false")
}

func (v survey) atBatches() []driver.Finding {
	const need = 2 * maxBatch
	if size, ok := v.number("max.message.bytes"); ok && size < need {
		return v.find(driver.Unsafe, "max.message.bytes", fmt.Sprintf("%d bytes are too few for the renewals of many elections "+
			"in one batch, which is then refused", size), fmt.Sprint(1<<20))
	}
	return nil
}

// atTimestamps: they decide nothing, but a broker may check those that a writer gives.
func (v survey) atTimestamps() []driver.Finding {
	if v.values["message.timestamp.type"] != "CreateTime" {
		return nil
	}
	return v.find(driver.Advice, "message.timestamp.type", "records have the times of their writers; brokers refuse the records of a candidate whose clock is "+
		"further ahead than message.timestamp.after.max.ms (1 h if not set), so that candidate can never lead", "LogAppendTime")
}

// tally counts the records that were read of a log, from where reading began. Only Inspect uses it.
type tally struct {
	posts, foreign int64
	last           int64 // the offset of the last foreign one
	later          bool  // some are in a format that is not known here
	bytes          int64
	since, until   time.Time // by the clocks of brokers or writers
}

// aroundRecord is about the size of a record's parts besides its content, in a batch of few.
const aroundRecord = 40

func (t *tally) count(r *kgo.Record, ours bool) {
	if t.posts+t.foreign == 0 {
		t.since = r.Timestamp
	}
	t.until = r.Timestamp
	t.bytes += int64(aroundRecord + len(r.Key) + len(r.Value))
	for _, h := range r.Headers {
		t.bytes += int64(len(h.Key) + len(h.Value))
	}
	if ours {
		t.posts++
		return
	}
	t.foreign++
	t.last = r.Offset
}

func (s *Store) tally() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return tally{}
	}
	return s.now.seen
}

// refuseForeign keeps elections out of a topic that is in use for something else. One record of an
// election among those that were read makes it a topic of elections; then foreign records are a
// nuisance that Inspect reports.
func (t tally) refuseForeign() error {
	if t.later {
		return errors.New("it holds records of a later release of Tenure, which has other rules for valid records: run the same release in all candidates and " +
			"observers of the topic, or give this process another topic")
	}
	if t.foreign == 0 || t.posts > 0 {
		return nil
	}
	return fmt.Errorf("it holds %d records and none of an election: it is in use for something else, or a copy of another topic; "+
		"choose a topic for elections alone, or remove them with kafka-delete-records.sh", t.foreign)
}

// atForeign returns the findings about foreign records.
func (v survey) atForeign() []driver.Finding {
	if v.seen.foreign == 0 {
		return nil
	}
	return []driver.Finding{{
		Severity: driver.Warning, Setting: "records",
		Problem: fmt.Sprintf("%d of the %d records that were read are of no election, the last one at offset %d: they push out "+
			"those of elections, and more than %d of them at once make writes fail", v.seen.foreign, v.seen.foreign+v.seen.posts,
			v.seen.last, window),
		Remedy: fmt.Sprintf("look who writes them (kafka-console-consumer.sh --topic %s --partition 0 --offset %d), and give the right "+
			"to write to candidates alone", v.topic, v.seen.last),
	}}
}

const (
	// enough is the number of records that show how fast they come.
	enough = 1000
	// Leases in the time after which a record is removed.
	tooFewLeases = 2
	fewLeases    = 10
)

// atPace compares the lease with how long a record stays in the log, at the mean pace since reading
// began: the record of a leader must not be removed while it leads. A store that has read for long
// does not notice a burst; one that opens the topic then does.
func (v survey) atPace() []driver.Finding {
	retention, ok := v.number("retention.bytes")
	if !ok || retention < 0 || v.seen.posts+v.seen.foreign < enough {
		return nil
	}
	stays := time.Duration(float64(v.seen.until.Sub(v.seen.since)) * float64(retention) / float64(v.seen.bytes))
	severity := driver.Warning
	switch {
	case stays >= fewLeases*v.lease:
		return nil
	case stays < tooFewLeases*v.lease:
		severity = driver.Unsafe
	}
	return []driver.Finding{{
		Severity: severity, Setting: "retention.bytes",
		Problem: fmt.Sprintf("at the present rate of writes a record is removed about %v after it was written, which is less than %d leases of %v: the "+
			"record of a leader may be removed while it leads", stays.Round(time.Second), fewLeases, v.lease),
		Remedy: fmt.Sprintf("more retention.bytes, fewer elections in topic %s, or a shorter lease", v.topic),
	}}
}
