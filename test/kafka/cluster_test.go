package kafka

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/twmb/franz-go/pkg/kerr"
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

// dialing is the type of a function that dials.
type dialing = func(ctx context.Context, network, address string) (net.Conn, error)

// site is a cluster of either kind, in this process or of real brokers, with a topic for one test.
type site struct {
	tb    testing.TB
	seeds []string
	topic string
	dial  dialing
}

// cluster is Kafka in this process.
type cluster struct {
	*kfake.Cluster
	site
	network *kfake.VirtualNetwork // in virtual time; nil: the loopback interface
}

// start runs a cluster of one broker on the loopback interface.
func start(t testing.TB, opts ...kfake.Opt) *cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &cluster{c, site{t, c.ListenAddrs(), topic, loopback}, nil}
}

// loopback dials on the loopback interface.
var loopback = (&net.Dialer{}).DialContext

// startVirtual runs a cluster in the bubble of the test, on its own network.
func startVirtual(t testing.TB, brokers int, opts ...kfake.Opt) *cluster {
	t.Helper()
	network, ports := &kfake.VirtualNetwork{}, make([]int, brokers)
	for i := range ports {
		ports[i] = 9092 + i
	}
	c := start(t, append(opts, kfake.NumBrokers(brokers), kfake.Ports(ports...), kfake.ListenFn(network.Listen))...)
	c.network, c.dial = network, func(ctx context.Context, kind, address string) (net.Conn, error) {
		conn, err := network.DialContext(ctx, kind, address)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: kind, Err: err} // as on a real network
		}
		return conn, nil
	}
	return c
}

// inBubble runs a test with a cluster in virtual time.
func inBubble(t *testing.T, brokers int, test func(t *testing.T, c *cluster), opts ...kfake.Opt) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, startVirtual(t, brokers, opts...)) })
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

// clock returns a clock in the time of the test.
func (*site) clock() clock.Clock {
	if virtual() {
		return clock.Standard{}
	}
	return clock.System{}
}

// direct connects to the cluster, to real brokers as the super user.
func (s *site) direct(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{kgo.SeedBrokers(s.seeds...), kgo.Dialer(s.dial)}, more...)
}

// over connects through a relay, which stands for all brokers.
func (c *cluster) over(r *relay.Relay, more ...kgo.Opt) []kgo.Opt {
	address := r.URL()[len("nats://"):]
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) { return c.dial(ctx, network, address) }
	return c.direct(append(more, kgo.Dialer(dial))...)
}

// through connects to each broker over its own relay.
func (s *site) through(relays []*relay.Relay, more ...kgo.Opt) []kgo.Opt {
	to := map[string]string{}
	for i, address := range s.seeds {
		to[address] = relays[i].URL()[len("nats://"):]
	}
	return s.direct(append(more, kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		return s.dial(ctx, network, to[address])
	}))...)
}

// relay leads to the first broker.
func (c *cluster) relay() *relay.Relay { return c.relayTo(0) }

func (c *cluster) relayTo(broker int) (r *relay.Relay) {
	c.tb.Helper()
	address := c.ListenAddrs()[broker]
	var err error
	if c.network == nil {
		r, err = relay.New("tcp://" + address)
	} else {
		r, err = relay.Over(c.network, fmt.Sprint("localhost:", 19092+broker), address)
	}
	if err != nil {
		c.tb.Fatal(err)
	}
	c.tb.Cleanup(r.Close)
	return r
}

// restore ends a Cut of a relay.
func (c *cluster) restore(r *relay.Relay) {
	c.tb.Helper()
	if err := r.Restore(); err != nil {
		c.tb.Fatal(err)
	}
}

// relays returns one relay for each broker.
func (c *cluster) relays() (all []*relay.Relay) {
	c.tb.Helper()
	for i := range c.ListenAddrs() {
		all = append(all, c.relayTo(i))
	}
	return all
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
	conf := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	conf.Name, conf.Value, conf.Op = setting, &value, kmsg.IncrementalAlterConfigOpSet
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.Configs = kmsg.ConfigResourceTypeTopic, s.topic, append(r.Configs, conf)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, r)
	answer, err := req.RequestWith(within(s.tb), s.client())
	if err == nil {
		err = kerr.ErrorForCode(answer.Resources[0].ErrorCode)
	}
	if err != nil {
		s.tb.Fatal(err)
	}
}

// bounds returns where the log begins and ends.
func (s *site) bounds() (start, end int64) {
	s.tb.Helper()
	client := s.client()
	defer client.Close()
	for which, to := range map[int64]*int64{-2: &start, -1: &end} {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp = which
		of := kmsg.NewListOffsetsRequestTopic()
		of.Topic, of.Partitions = s.topic, append(of.Partitions, p)
		req := kmsg.NewPtrListOffsetsRequest()
		req.Topics = append(req.Topics, of)
		answer, err := req.RequestWith(within(s.tb), client)
		if err != nil {
			s.tb.Fatal(err)
		}
		*to = answer.Topics[0].Partitions[0].Offset
	}
	return start, end
}

// records returns all records of the log, as any consumer gets them.
func (s *site) records() []*kgo.Record {
	s.tb.Helper()
	_, end := s.bounds()
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
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Offset = offset
	of := kmsg.NewDeleteRecordsRequestTopic()
	of.Topic, of.Partitions = s.topic, append(of.Partitions, p)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics = append(req.Topics, of)
	answer, err := req.RequestWith(within(s.tb), s.client())
	if err == nil {
		err = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		s.tb.Fatal(err)
	}
}

// BenchmarkQuantiles measures swaps by one store that has the cluster to itself.
func BenchmarkQuantiles(b *testing.B) {
	c := start(b)
	s, key := c.open(c.direct()), fresh("bench")
	swaps(b, s, key, create(b, s, key, "start"))
}

func swaps(b *testing.B, s *kafkalog.Store, key string, v driver.Version) {
	n := 0
	quantiles(b, func() {
		n++
		next, err := s.CompareAndSwap(b.Context(), key, v, fmt.Appendf(nil, "%0320d", n))
		if err != nil {
			b.Fatal(err)
		}
		v = next
	})
}

// quantiles reports the duration of do, after pauses that do not count.
func quantiles(b *testing.B, do func(), pauses ...time.Duration) {
	var took []time.Duration
	for b.Loop() {
		for _, d := range pauses {
			time.Sleep(d)
		}
		began := time.Now()
		do()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
