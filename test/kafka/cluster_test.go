package kafka

import (
	"context"
	"crypto/rand"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// patience is how long what must happen may take.
const patience = time.Minute

// steady is what a broker gets for an answer where no broker is silent: a machine that is busy may be late by a second.
const steady = 6 * time.Second

const topic = "elections"

// cluster is Kafka in this process.
type cluster struct {
	*kfake.Cluster
	tb testing.TB
}

func start(t testing.TB, opts ...kfake.Opt) *cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &cluster{c, t}
}

// within is a context that ends after the patience of a test.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// direct connects to the cluster.
func (c *cluster) direct(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)}, more...)
}

// over connects through a relay, to which all brokers are one.
func (c *cluster) over(r *relay.Relay, more ...kgo.Opt) []kgo.Opt {
	address := r.URL()[len("nats://"):]
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return c.direct(append(more, kgo.Dialer(dial))...)
}

// through connects to each broker over a relay of its own.
func (c *cluster) through(relays []*relay.Relay, more ...kgo.Opt) []kgo.Opt {
	to := map[string]string{}
	for i, address := range c.ListenAddrs() {
		to[address] = relays[i].URL()[len("nats://"):]
	}
	return c.direct(append(more, kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, to[address])
	}))...)
}

func (c *cluster) relay() *relay.Relay {
	c.tb.Helper()
	r, err := relay.New("tcp://" + c.ListenAddrs()[0])
	if err != nil {
		c.tb.Fatal(err)
	}
	c.tb.Cleanup(r.Close)
	return r
}

func (c *cluster) open(connection []kgo.Opt, opts ...kafkalog.Option) *kafkalog.Store {
	c.tb.Helper()
	s, err := kafkalog.Open(within(c.tb), connection, topic, append([]kafkalog.Option{kafkalog.WithTimeout(steady)}, opts...)...)
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

// another returns a function that waits until one more was sent than by now.
func (s *sent) another(t testing.TB) (wait func()) {
	before := s.n.Load()
	return func() {
		t.Helper()
		eventually(t, "a request "+s.key.Name(), func() bool { return s.n.Load() > before })
	}
}

// prompt lets an attempt take no longer than that. A machine that is busy may make one late, so one of several must be in time:
// whoever waits for what does not come is late in all of them.
func prompt(t testing.TB, limit time.Duration, attempt func()) {
	t.Helper()
	const attempts = 5
	for n := 1; ; n++ {
		began := time.Now()
		attempt()
		took := time.Since(began)
		if took <= limit {
			return
		}
		if n == attempts {
			t.Errorf("of %d attempts none takes %v at most, and the last one %v", n, limit, took)
			return
		}
	}
}

// eventually asks until it is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
