package kafkad

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// Rig is a topic on three brokers. The topic is not deleted afterwards: if the copies of a deleted
// topic are not complete, a broker that was down can no longer register (Kafka 4.3.1).
func Rig() rig.Rig {
	return rig.Rig{Name: "kafka", Kind: brokersKind, Attention: 700 * time.Millisecond, Start: func(t testing.TB, calm bool) rig.Site {
		timeout := 2 * time.Second // the default
		if calm {
			timeout = 30 * time.Second
		}
		return &site{Shared(t), "elections-" + crand.Text()[:12], timeout}
	}}
}

// site is a topic on running brokers.
type site struct {
	*Cluster
	topic   string
	timeout time.Duration
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
// harnesses, which are created one after another.
func (s *site) Kit(t testing.TB) drivertest.Harness {
	operator := s.open(t, kgo.SeedBrokers(s.Seeds()...))
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
	strike := func(ofLeader bool, fall, rise func(*Cluster, int) error, lasts time.Duration) func(context.Context, testing.TB, *rand.Rand) {
		return func(ctx context.Context, t testing.TB, _ *rand.Rand) {
			rig.Sleep(ctx, time.Second)
			// Otherwise a killed broker may have the one copy that counts.
			rig.Must(t, s.Complete(wait.Context(t)))
			n := s.Leader(t, s.topic, 0)
			if !ofLeader {
				n = n%Brokers + 1
			}
			rig.Must(t, fall(s.Cluster, n))
			rig.Sleep(ctx, lasts)
			rig.Must(t, rise(s.Cluster, n))
			rig.Must(t, s.Complete(wait.Context(t)))
		}
	}
	kill, start, freeze, thaw := (*Cluster).Kill, (*Cluster).Start, (*Cluster).Pause, (*Cluster).Resume
	const counted = "writes wait until it is no more counted on"
	return []rig.Fault{
		{
			Name: "leader killed", Why: "what was acknowledged is on two more brokers, and what was not may come to light later",
			Strike: strike(true, kill, start, 15*time.Second), Least: 16 * time.Second, Unknowns: 4,
		},
		{
			Name: "leader frozen", Why: "when it goes on, it believes for a moment that it leads still",
			Strike: strike(true, freeze, thaw, 14*time.Second), Least: 20 * time.Second, Unknowns: 4,
		},
		{Name: "another killed", Why: counted, Strike: strike(false, kill, start, 13*time.Second), Least: 14 * time.Second},
		{Name: "another frozen", Why: counted, Strike: strike(false, freeze, thaw, 12*time.Second), Least: 16 * time.Second, Unknowns: 4},
		{
			Name: "rolling restart", Why: "each broker hands over what it leads", Least: 16 * time.Second,
			Strike: func(_ context.Context, t testing.TB, _ *rand.Rand) { s.Roll(t) },
		},
	}
}
