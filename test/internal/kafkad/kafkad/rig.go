package kafkad

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"net"
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
