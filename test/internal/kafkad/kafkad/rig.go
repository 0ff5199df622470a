package kafkad

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rotation"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// Rig is a topic on three brokers. The topic is not deleted afterwards: if the copies of a deleted
// topic are not complete, a broker that was down can no longer register (Kafka 4.3.1).
func Rig() rig.Rig {
	return rig.Rig{Name: "kafka", Kind: brokersKind, Shared: true, Attention: 700 * time.Millisecond, Start: func(t testing.TB, calm bool) rig.Site {
		timeout := 2 * time.Second // the default
		if calm {
			timeout = 30 * time.Second
		}
		return &site{Cluster: Shared(t), topic: "elections-" + crand.Text()[:12], timeout: timeout}
	}}
}

// site is a topic on running brokers.
type site struct {
	*Cluster
	topic   string
	timeout time.Duration
	kit     sync.Mutex
}

// open tries again: on a busy machine the first answers may take longer than the timeout.
func (s *site) open(t testing.TB, connection ...kgo.Opt) (store *kafkalog.Store) {
	t.Helper()
	wait.Succeeds(t, "open "+s.topic, func(context.Context) (err error) {
		store, err = kafkalog.Open(wait.Context(t), connection, s.topic, kafkalog.WithTimeout(s.timeout))
		return err
	})
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// Open connects to each broker over its own relay.
func (s *site) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	way, err := relay.NewSet(s.Seeds())
	rig.Must(t, err)
	t.Cleanup(way.Close)
	to := way.Via()
	return s.open(t, kgo.SeedBrokers(s.Seeds()...), kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, to[address])
	})), way
}

// Kit lets the denied user lose its rights once the harness exists. The user is the same in all
// harnesses, so they are created one after another.
func (s *site) Kit(t testing.TB) drivertest.Harness {
	operator := s.open(t, kgo.SeedBrokers(s.Seeds()...))
	s.kit.Lock()
	defer s.kit.Unlock()
	s.Allow(t, Stranger, kmsg.ACLResourceTypeTopic, s.topic, kmsg.ACLOperationRead, kmsg.ACLOperationWrite)
	denied := s.open(t, kgo.SeedBrokers(s.SASLSeeds()...), kgo.SASL(plain.Auth{User: Stranger, Pass: Stranger}.AsMechanism()))
	s.Revoke(t, Stranger)
	return drivertest.Harness{
		Denied: denied, Patience: 5 * time.Minute, Lease: 10 * time.Second,
		Delete: func(ctx context.Context, key string) error {
			e, err := operator.Read(ctx, key)
			if err == nil {
				_, err = operator.CompareAndSwap(ctx, key, e.Version, nil)
			}
			return err
		},
	}
}

// Roll restarts all brokers gracefully, one after another, each when the copies are complete again.
func (c *Cluster) Roll(t testing.TB) {
	t.Helper()
	for n := 1; n <= Brokers; n++ {
		rig.Must(t, c.Stop(n))
		rig.Must(t, c.Start(n))
		rig.Must(t, c.Complete(wait.Context(t)))
	}
}

// Faults are of brokers that lead the topic or not.
func (s *site) Faults() []rig.Fault {
	fall := func(ofLeader bool, fall, rise func(*Cluster, int) error) func(testing.TB, *rand.Rand) func() {
		return func(t testing.TB, _ *rand.Rand) func() {
			// Otherwise a killed broker may have the one copy that counts.
			rig.Must(t, s.Complete(wait.Context(t)))
			n := s.Leader(t, s.topic, 0)
			if !ofLeader {
				n = n%Brokers + 1
			}
			rig.Must(t, fall(s.Cluster, n))
			return func() {
				rig.Must(t, rise(s.Cluster, n))
				rig.Must(t, s.Complete(wait.Context(t)))
			}
		}
	}
	kill, start, freeze, thaw := (*Cluster).Kill, (*Cluster).Start, (*Cluster).Pause, (*Cluster).Resume
	const (
		before  = time.Second
		counted = "writes wait until it is no more counted on"
	)
	return []rig.Fault{
		{
			Name: "leader killed", Why: "what was acknowledged is on two more brokers, and what was not may come to light later",
			Fall: fall(true, kill, start), Before: before, Lasts: 15 * time.Second, Least: 16 * time.Second, Unknowns: 4,
		},
		{
			Name: "leader frozen", Why: "when it goes on, it believes for a moment that it leads still",
			Fall: fall(true, freeze, thaw), Before: before, Lasts: 14 * time.Second, Least: 20 * time.Second, Unknowns: 4,
		},
		{
			Name: "another killed", Why: counted, Fall: fall(false, kill, start),
			Before: before, Lasts: 13 * time.Second, Least: 14 * time.Second,
		},
		{
			Name: "another frozen", Why: counted, Fall: fall(false, freeze, thaw),
			Before: before, Lasts: 12 * time.Second, Least: 16 * time.Second, Unknowns: 4,
		},
		{
			Name: "rolling restart", Why: "each broker hands over what it leads", Least: 16 * time.Second,
			Fall: func(t testing.TB, _ *rand.Rand) func() { s.Roll(t); return func() {} },
		},
	}
}

// as returns a connection of a user.
func (s *site) as(user, password string) []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(s.SASLSeeds()...), kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism())}
}

// client opens a topic once. The brokers may be slow, but they answer.
func (s *site) client(name, topic string, connection []kgo.Opt, opts ...kafkalog.Option) rig.Client {
	return rig.Client{Name: name, Open: func(t testing.TB) (driver.Store, error) {
		store, err := kafkalog.Open(wait.Context(t), connection, topic, append(opts, kafkalog.WithTimeout(s.timeout))...)
		if err == nil {
			t.Cleanup(func() { _ = store.Close() })
		}
		return store, err
	}}
}

// refused returns a client that cannot open the topic.
func refused(c rig.Client, denied bool, want string) rig.Client {
	c.Fails, c.Denied, c.Says = "open", denied, rig.Says(want)
	return c
}

// Mistakes are reported when the topic is opened.
func (s *site) Mistakes(t testing.TB) []rig.Client {
	const nobody = "127.0.0.1:1"
	s.Revoke(t, Stranger)
	plain := []kgo.Opt{kgo.SeedBrokers(s.Seeds()...)}
	compacted, forgetful := s.topic+"-compacted", s.topic+"-forgetful"
	s.CreateTopic(t, compacted, map[string]string{"retention.ms": "-1", "retention.bytes": "67108864", "cleanup.policy": "compact"})
	s.CreateTopic(t, forgetful, nil)
	return []rig.Client{
		s.client("no mistake", s.topic, plain),
		refused(s.client("no broker", s.topic, []kgo.Opt{kgo.SeedBrokers(nobody)}), false, nobody),
		refused(s.client("wrong password", s.topic, s.as(Candidate, rig.Secret)), true, "SASL_AUTHENTICATION_FAILED"),
		refused(s.client("no password", s.topic, []kgo.Opt{kgo.SeedBrokers(s.SASLSeeds()...)}), false, "SASL"),
		refused(s.client("no rights at all", s.topic, s.as(Stranger, Stranger)), true, "TOPIC_AUTHORIZATION_FAILED"),
		refused(s.client("a compacted topic", compacted, plain), false, "--add-config cleanup.policy=delete"),
		refused(s.client("a topic that forgets", forgetful, plain), false, "--add-config retention.ms=-1"),
	}
}

const (
	read, write    = kmsg.ACLOperationRead, kmsg.ACLOperationWrite
	describe, look = kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs
)

// granted gives a client only these rights to its topic before it opens it.
func (s *site) granted(name, user, topic string, rights []kmsg.ACLOperation, opts ...kafkalog.Option) rig.Client {
	c := s.client(name, topic, s.as(user, user), opts...)
	open := c.Open
	c.Denied, c.Elsewhere = true, topic != s.topic
	c.Open = func(t testing.TB) (driver.Store, error) {
		s.Revoke(t, user)
		s.Allow(t, user, kmsg.ACLResourceTypeTopic, topic, rights...)
		return open(t)
	}
	return c
}

// Rights are those to a topic that exists, and to two that do not.
func (s *site) Rights(t testing.TB) []rig.Client {
	t.Cleanup(func() {
		s.Revoke(t, Candidate)
		s.Revoke(t, Observer)
	})
	may := func(rights ...kmsg.ACLOperation) []kmsg.ACLOperation { return rights }
	candidate := s.granted("candidate", Candidate, s.topic, may(read, write, describe))
	candidate.Fails, candidate.Says = "inspect", rig.Says("DescribeConfigs")
	observer := s.granted("observer", Observer, s.topic, may(read, describe))
	observer.Fails = "insert update rights inspect"
	observer.Says = map[string]string{"": "TOPIC_AUTHORIZATION_FAILED", "rights": "grant Write", "inspect": "DescribeConfigs"}
	reader := s.granted("observer without Describe, which Read includes", Observer, s.topic, may(read))
	reader.Fails, reader.Says = observer.Fails, observer.Says
	former := s.granted("observer that loses Read", Observer, s.topic, may(read, describe))
	former.Fails, former.Says = "read "+observer.Fails, observer.Says
	open := former.Open
	former.Open = func(t testing.TB) (driver.Store, error) {
		store, err := open(t)
		s.Revoke(t, Observer)
		s.Allow(t, Observer, kmsg.ACLResourceTypeTopic, s.topic, describe)
		return store, err
	}
	founder := s.granted("founder", Candidate, s.topic+"-founded", may(read, write, describe, kmsg.ACLOperationCreate, look))
	found := founder.Open
	founder.Open = func(t testing.TB) (driver.Store, error) {
		store, err := found(t)
		if err == nil {
			if found, err := store.(driver.Inspector).Inspect(wait.Context(t), 5*time.Minute); err != nil || len(found) > 0 {
				t.Errorf("what Open has created: %v (%v)", found, err)
			}
		}
		return store, err
	}
	const refusal = "TOPIC_AUTHORIZATION_FAILED"
	absent := s.topic + "-absent"
	lonely := s.granted("candidate without Create that does not ask for it", Candidate, absent, may(read, write, describe), kafkalog.WithoutCreate())
	return []rig.Client{
		candidate, observer, reader, former, founder,
		refused(s.granted("candidate without Create", Candidate, absent, may(read, write, describe)), true, "grant Create on it"),
		refused(lonely, false, "it does not exist"),
		refused(s.granted("only Describe", Observer, s.topic, may(describe)), true, refusal),
		refused(s.granted("only Write", Observer, s.topic, may(write)), true, refusal),
	}
}

// Rotations replaces the password in a file of client properties.
func (s *site) Rotations(t testing.TB) []*rotation.Play {
	const user = "rotated"
	s.Allow(t, user, kmsg.ACLResourceTypeTopic, s.topic, read, write, describe)
	file, hand := rotation.File(t, "client.properties", "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"+
		"sasl.username="+user+"\nsasl.password=SECRET\n")
	return []*rotation.Play{{
		Name:    "properties",
		Args:    []string{"--store", "kafka://" + strings.Join(s.SASLSeeds(), ",") + "/" + s.topic, "--kafka-properties", file},
		Store:   s.open(t, kgo.SeedBrokers(s.Seeds()...)),
		Accept:  func(secret string) { s.Password(t, user, secret) },
		Hand:    hand,
		Refusal: "SASL_AUTHENTICATION_FAILED",
	}}
}

// Running are three brokers, real or not. They are numbered from 0.
type Running struct {
	rig.Server
	Cluster *Cluster // nil for kfake
	fake    *kfake.Cluster
}

var brokersKind = rig.Kind{
	Title: "three Kafka brokers", Connect: connect,
	Start: func(ctx context.Context, dir string) (rig.Running, error) {
		c, err := Up(ctx, dir)
		return Running{rig.NoServer, c, nil}, err
	},
}

// Fake is kfake in this process.
func Fake() rig.Kind {
	k := brokersKind
	k.Start = func(context.Context, string) (rig.Running, error) {
		c, err := kfake.NewCluster(kfake.NumBrokers(Brokers), kfake.GroupMinSessionTimeout(time.Second))
		return Running{rig.NoServer, nil, c}, err
	}
	return k
}

// one is one real broker.
type one struct {
	*Cluster
	n int
}

func (o one) Start() error  { return o.Cluster.Start(o.n) }
func (o one) Stop() error   { return o.Cluster.Stop(o.n) }
func (o one) Kill() error   { return o.Cluster.Kill(o.n) }
func (o one) Pause() error  { return o.Cluster.Pause(o.n) }
func (o one) Resume() error { return o.Cluster.Resume(o.n) }

// Each returns the real brokers one by one.
func (r Running) Each() (all []rig.Server) {
	for i := range Brokers {
		all = append(all, one{r.Cluster, i + 1})
	}
	return all
}

// Addresses returns HOST:PORT of each broker.
func (r Running) Addresses() []string {
	if r.fake != nil {
		return r.fake.ListenAddrs()
	}
	return r.Cluster.Seeds()
}

// End kills the brokers.
func (r Running) End() {
	if r.fake != nil {
		r.fake.Close()
		return
	}
	_ = r.Cluster.End()
}

// Create creates a topic.
func (r Running) Create(ctx context.Context, topic string) error {
	s, err := kafkalog.Open(ctx, []kgo.Opt{kgo.SeedBrokers(r.Addresses()...)}, topic,
		kafkalog.WithTimeout(time.Minute)) // brokers that have just started are slow
	if err != nil {
		return err
	}
	return s.Close()
}

// LeaderOf returns the broker that leads a topic.
func (r Running) LeaderOf(ctx context.Context, topic string) (int, error) {
	if r.fake != nil {
		return int(r.fake.LeaderFor(topic, 0)), nil
	}
	n, err := r.Cluster.LeaderOf(ctx, topic)
	return n - 1, err
}

// CoordinatorOf returns the broker that coordinates a group.
func (r Running) CoordinatorOf(ctx context.Context, group string) (int, error) {
	if r.fake != nil {
		return int(r.fake.CoordinatorFor(group)), nil
	}
	n, err := r.Cluster.CoordinatorOf(ctx, group)
	return n - 1, err
}

func connect(c rig.Connector) (rig.Opener, error) {
	return func(ctx context.Context, topic string) (driver.Store, error) {
		return kafkalog.Open(ctx, Options(c), topic)
	}, nil
}

// Options returns the options of all clients of a process.
func Options(c rig.Connector) []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(c.Addresses...), kgo.ClientID(c.ID), kgo.WithHooks(requestCounter(c.Count)),
		kgo.Dialer(c.DialContext)}
}

type requestCounter func(kind string)

// OnBrokerWrite counts a request when it is written to a connection.
func (count requestCounter) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err == nil {
		count(kmsg.NameForKey(key))
	}
}

// installPatience is the time limit for fetching the brokers' program and starting the brokers.
const installPatience = 10 * time.Minute

func up(dir string) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), installPatience)
	defer cancel()
	return Up(ctx, dir)
}

// shared is the cluster of this process's tests.
var shared struct {
	once sync.Once
	dir  string
	c    *Cluster
	err  error
}

// Shared starts one cluster for all tests of a package, with Main as their TestMain, and fails the
// test if a program is missing. Tests that call it have the build tag integration, because it
// fetches the brokers' program if that is missing. The end of each test waits until its faults are
// repaired. So tests with faults must not be parallel; parallel tests run after them.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "kafkad-"); shared.err == nil {
			shared.c, shared.err = up(shared.dir)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		shared.c.show(t)
		if err := shared.c.healed(); err != nil {
			t.Error(err)
			// Later tests fail at once instead of waiting again.
			shared.err = fmt.Errorf("the brokers are not whole since %s: %w", t.Name(), err)
		}
	})
	return shared.c
}

// healed calls Heal, and again if that fails: a broker ends by itself if the others are not up soon
// enough after its start.
func (c *Cluster) healed() (err error) {
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err = c.Heal(ctx)
		if cancel(); err == nil {
			return nil
		}
	}
	return err
}

// Main runs the tests of a package and then ends the cluster of Shared.
func Main(m *testing.M) {
	code := m.Run()
	End()
	os.Exit(code)
}

// End ends the cluster of Shared.
func End() {
	if shared.c != nil {
		_ = shared.c.End()
	}
	_ = os.RemoveAll(shared.dir)
}

// show logs the end of each broker's log, if the test failed.
func (c *Cluster) show(t testing.TB) {
	if !t.Failed() {
		return
	}
	for _, b := range c.brokers {
		t.Logf("%s:\n%s", b.Name, b.Said())
	}
}

// do repeats a request until it succeeds, and fails the test if it does not.
func (c *Cluster) do(t testing.TB, what string, ask func(context.Context, admin) error) {
	t.Helper()
	must(t, func(ctx context.Context) (none struct{}, err error) {
		return none, c.until(ctx, what, func(client admin) error { return ask(ctx, client) })
	})
}

func must[T any](t testing.TB, call func(context.Context) (T, error)) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := call(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Leader returns the number of the broker that leads a partition. It waits until there is one.
func (c *Cluster) Leader(t testing.TB, topic string, partition int) int {
	t.Helper()
	return must(t, func(ctx context.Context) (int, error) { return c.leaderOf(ctx, topic, partition) })
}

// Coordinator is CoordinatorOf for tests.
func (c *Cluster) Coordinator(t testing.TB, group string) int {
	t.Helper()
	return must(t, func(ctx context.Context) (int, error) { return c.CoordinatorOf(ctx, group) })
}

// CreateTopic creates a topic with one partition, three copies, and these settings in addition to
// the brokers' own.
func (c *Cluster) CreateTopic(t testing.TB, topic string, settings map[string]string) {
	t.Helper()
	c.do(t, "create "+topic, func(ctx context.Context, client admin) error { return client.create(ctx, topic, settings) })
}

// DeleteTopic removes a topic.
func (c *Cluster) DeleteTopic(t testing.TB, topic string) {
	t.Helper()
	c.do(t, "delete "+topic, func(ctx context.Context, client admin) error { return client.delete(ctx, topic) })
}
