package kafka

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// patience is how long, in virtual time, a test waits for an event that must come.
const patience = time.Minute

// A broker has this time for an answer where no broker is silent: on a machine that may be busy,
// and in virtual time.
const (
	unhurried = 30 * time.Second
	steady    = 6 * time.Second
)

// promptly is how long the report of a mistake may take, in virtual time.
const promptly = 2 * time.Second

const topic = "elections"

// site is a cluster of either kind, in this process or of real brokers, with a topic and a consumer
// group for one test.
type site struct {
	tb      testing.TB
	seeds   []string
	topic   string
	group   group.Config
	network *pipenet.Network // in virtual time; nil: the loopback interface
	admin   func() *kadm.Client
}

func newSite(tb testing.TB, seeds []string, topic, group string, network *pipenet.Network) site {
	s := site{tb: tb, seeds: seeds, topic: topic, network: network}
	s.group.Name = group
	s.admin = sync.OnceValue(func() *kadm.Client { return kadm.NewClient(s.client(kgo.MetadataMinAge(10 * time.Millisecond))) })
	return s
}

// cluster is Kafka in this process.
type cluster struct {
	*kfake.Cluster
	site
}

// start runs a cluster of one broker on the loopback interface.
func start(t testing.TB, opts ...kfake.Opt) *cluster { return startOn(t, nil, opts...) }

func startOn(t testing.TB, network *pipenet.Network, opts ...kfake.Opt) *cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &cluster{c, newSite(t, c.ListenAddrs(), topic, "billing", network)}
}

// startVirtual runs a cluster in the bubble of the test, on its own network.
func startVirtual(t testing.TB, brokers int, opts ...kfake.Opt) *cluster {
	t.Helper()
	network := new(pipenet.Network)
	listen := func(kind, _ string) (net.Listener, error) { return network.Listen(kind, "") }
	return startOn(t, network, append(opts, kfake.NumBrokers(brokers), kfake.ListenFn(listen))...)
}

// inBubble runs a test with a cluster in virtual time.
func inBubble(t *testing.T, brokers int, test func(t *testing.T, c *cluster), opts ...kfake.Opt) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, startVirtual(t, brokers, opts...)) })
}

// each is inBubble for one case of a table.
func each(t *testing.T, name any, test func(t *testing.T, c *cluster), opts ...kfake.Opt) {
	t.Helper()
	t.Run(fmt.Sprint(name), func(t *testing.T) { inBubble(t, 1, test, opts...) })
}

// virtual reports whether the caller is in a bubble, where clocks begin with the year 2000.
func virtual() bool { return time.Now().Year() < 2020 }

// left returns how long a test waits for an event that must come: patience in virtual time.
func left() time.Duration {
	if virtual() {
		return patience
	}
	return wait.Left()
}

// within returns a context that ends after left.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), left())
	t.Cleanup(cancel)
	return ctx
}

func (s *site) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if s.network == nil {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return s.network.DialContext(ctx, network, address)
}

// direct connects to the cluster, to real brokers as the super user.
func (s *site) direct(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{kgo.SeedBrokers(s.seeds...), kgo.Dialer(s.dial)}, more...)
}

// through connects to each broker over its own relay.
func (s *site) through(relays relay.Set, more ...kgo.Opt) []kgo.Opt {
	to := relays.Via()
	return s.direct(append(more, kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		return s.dial(ctx, network, to[address])
	}))...)
}

// relays returns one relay for each broker.
func (s *site) relays() relay.Set {
	s.tb.Helper()
	all := relay.Set{}
	s.tb.Cleanup(all.Close)
	for _, address := range s.seeds {
		var err error
		if s.network == nil {
			all[address], err = relay.New("tcp://" + address)
		} else {
			all[address], err = relay.Over(s.network, "", address)
		}
		if err != nil {
			s.tb.Fatal(err)
		}
	}
	return all
}

// refuse lets the relays refuse connections, until restore.
func refuse(all relay.Set) {
	for _, r := range all {
		r.Cut()
	}
}

func (s *site) restore(all relay.Set) {
	s.tb.Helper()
	for _, r := range all {
		if err := r.Restore(); err != nil {
			s.tb.Fatal(err)
		}
	}
}

func (s *site) open(connection []kgo.Opt, opts ...kafkalog.Option) *kafkalog.Store {
	s.tb.Helper()
	timeout := unhurried
	if virtual() {
		timeout = steady
	}
	store, err := kafkalog.Open(within(s.tb), connection, s.topic, append([]kafkalog.Option{kafkalog.WithTimeout(timeout)}, opts...)...)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = store.Close() })
	return store
}

func (s *site) client(opts ...kgo.Opt) *kgo.Client {
	s.tb.Helper()
	client, err := kgo.NewClient(s.direct(opts...)...)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(client.Close)
	return client
}

// leads returns the term of a candidate that is elected on a store.
func (s *site) leads(store driver.Store, election string, cfg tenure.Config) *tenure.Term {
	s.tb.Helper()
	e, err := tenure.New(store, election, cfg)
	if err != nil {
		s.tb.Fatal(err)
	}
	term, err := e.Campaign(within(s.tb))
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = term.Resign(within(s.tb)) })
	return term
}

func as(user string) kgo.Opt { return kgo.SASL(plain.Auth{User: user, Pass: user}.AsMechanism()) }

func fresh(name string) string { return name + "-" + rand.Text()[:12] }

func read(t testing.TB, s driver.Store, key string) driver.Entry {
	t.Helper()
	e, err := s.Read(within(t), key)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func swap(t testing.TB, s driver.Store, key string, prev driver.Version, value string) driver.Version {
	t.Helper()
	v, err := s.CompareAndSwap(within(t), key, prev, []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func create(t testing.TB, s driver.Store, key, value string) driver.Version {
	t.Helper()
	return swap(t, s, key, read(t, s, key).Version, value)
}

// shows returns a function that reads the cell once, in little time, and reports whether what it
// read will do.
func shows(s driver.Store, key string, ok func(driver.Entry) bool) func() bool {
	attention := 3 * time.Second
	if virtual() {
		attention = time.Second
	}
	return showsWithin(attention, s, key, ok)
}

func showsWithin(attention time.Duration, s driver.Store, key string, ok func(driver.Entry) bool) func() bool {
	return func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), attention)
		defer cancel()
		e, err := s.Read(ctx, key)
		return err == nil && ok(e)
	}
}

// moveOn makes the next of three brokers the leader of the partition.
func (c *cluster) moveOn() {
	c.tb.Helper()
	if err := c.MoveTopicPartition(topic, 0, (c.LeaderFor(topic, 0)+1)%3); err != nil {
		c.tb.Fatal(err)
	}
}

// sent counts the requests of a kind that a client has sent.
type sent struct {
	key kmsg.Key
	n   atomic.Int64
}

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (s *sent) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if kmsg.Key(key) == s.key && err == nil {
		s.n.Add(1)
	}
}

// another returns a function that waits until one more was sent.
func (s *sent) another(t testing.TB) (wait func()) {
	before := s.n.Load()
	return func() {
		t.Helper()
		eventually(t, "a request "+s.key.Name(), func() bool { return s.n.Load() > before })
	}
}

// prompt runs an attempt, and limits its duration in virtual time.
func prompt(t testing.TB, limit time.Duration, attempt func()) {
	t.Helper()
	began := time.Now()
	attempt()
	if took := time.Since(began); virtual() && took > limit {
		t.Errorf("it takes %v, more than %v", took, limit)
	}
}

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !wait.Within(left(), ok) {
		t.Fatal("not in time:", what)
	}
}

// alter changes a setting of the topic.
func (s *site) alter(setting, value string) {
	s.tb.Helper()
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: setting, Value: &value}}
	answer, err := s.admin().AlterTopicConfigs(within(s.tb), change, s.topic)
	if err == nil {
		err = answer[0].Err
	}
	if err != nil {
		s.tb.Fatal(err)
	}
}

// offset returns where a partition of the topic begins or ends: by is one of kadm's functions.
func (s *site) offset(ctx context.Context, partition int32, by offsets) (int64, error) {
	got, err := by(s.admin(), ctx, s.topic)
	at, _ := got.Lookup(s.topic, partition)
	return at.Offset, errors.Join(err, at.Err)
}

type offsets = func(*kadm.Client, context.Context, ...string) (kadm.ListedOffsets, error)

// bound is offset for partition 0.
func (s *site) bound(by offsets) int64 {
	s.tb.Helper()
	at, err := s.offset(within(s.tb), 0, by)
	if err != nil {
		s.tb.Fatal(err)
	}
	return at
}

// records returns all records of the log, as any consumer gets them.
func (s *site) records() []*kgo.Record {
	s.tb.Helper()
	end := s.bound((*kadm.Client).ListEndOffsets)
	client := s.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.topic: {0: kgo.NewOffset().AtStart()}}))
	var all []*kgo.Record
	for len(all) == 0 || all[len(all)-1].Offset < end-1 {
		fetched := client.PollFetches(within(s.tb))
		if err := fetched.Err(); err != nil {
			s.tb.Fatal(err)
		}
		all = append(all, fetched.Records()...)
	}
	return all
}

// removeUpTo removes the head of the log.
func (s *site) removeUpTo(offset int64) {
	s.tb.Helper()
	var to kadm.Offsets
	to.AddOffset(s.topic, 0, offset, -1)
	answer, err := s.admin().DeleteRecords(within(s.tb), to)
	if err = errors.Join(err, answer.Error()); err != nil {
		s.tb.Fatal(err)
	}
}

// quantiles reports the duration of do, after pauses that do not count.
func quantiles(b *testing.B, do func(), pauses ...time.Duration) {
	var took figures.Dist
	for b.Loop() {
		for _, d := range pauses {
			time.Sleep(d)
		}
		began := time.Now()
		do()
		took = append(took, time.Since(began))
	}
	took.Report(b, "")
}
