package kafka

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/relay"
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

// cluster is Kafka in this process.
type cluster struct {
	*kfake.Cluster
	tb      testing.TB
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
	return &cluster{c, t, nil}
}

// startVirtual runs a cluster in the bubble of the test, on its own network.
func startVirtual(t testing.TB, brokers int, opts ...kfake.Opt) *cluster {
	t.Helper()
	network, ports := &kfake.VirtualNetwork{}, make([]int, brokers)
	for i := range ports {
		ports[i] = 9092 + i
	}
	c := start(t, append(opts, kfake.NumBrokers(brokers), kfake.Ports(ports...), kfake.ListenFn(network.Listen))...)
	c.network = network
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

// clock returns a clock in the cluster's time.
func (c *cluster) clock() clock.Clock {
	if c.network != nil {
		return clock.Standard{}
	}
	return clock.System{}
}

// dial reaches the cluster's network.
func (c *cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.network != nil {
		return c.network.DialContext(ctx, network, address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// direct connects to the cluster.
func (c *cluster) direct(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.Dialer(c.dial)}, more...)
}

// over connects through a relay, which stands for all brokers.
func (c *cluster) over(r *relay.Relay, more ...kgo.Opt) []kgo.Opt {
	address := r.URL()[len("nats://"):]
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) { return c.dial(ctx, network, address) }
	return c.direct(append(more, kgo.Dialer(dial))...)
}

// through connects to each broker over its own relay.
func (c *cluster) through(relays []*relay.Relay, more ...kgo.Opt) []kgo.Opt {
	to := map[string]string{}
	for i, address := range c.ListenAddrs() {
		to[address] = relays[i].URL()[len("nats://"):]
	}
	return c.direct(append(more, kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		return c.dial(ctx, network, to[address])
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

// relays returns one relay for each broker.
func (c *cluster) relays() (all []*relay.Relay) {
	c.tb.Helper()
	for i := range c.ListenAddrs() {
		all = append(all, c.relayTo(i))
	}
	return all
}

func (c *cluster) open(connection []kgo.Opt, opts ...kafkalog.Option) *kafkalog.Store {
	c.tb.Helper()
	timeout := unhurried
	if virtual() {
		timeout = steady
	}
	s, err := kafkalog.Open(within(c.tb), connection, topic, append([]kafkalog.Option{kafkalog.WithTimeout(timeout)}, opts...)...)
	if err != nil {
		c.tb.Fatal(err)
	}
	c.tb.Cleanup(func() { _ = s.Close() })
	return s
}

func (c *cluster) client(opts ...kgo.Opt) *kgo.Client {
	c.tb.Helper()
	client, err := kgo.NewClient(c.direct(opts...)...)
	if err != nil {
		c.tb.Fatal(err)
	}
	c.tb.Cleanup(client.Close)
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
