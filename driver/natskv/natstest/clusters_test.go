package natstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/identity"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// twoClusters returns two servers that do not know each other, with a bucket of the same name and
// the same sequences. The store has URLs of both and is connected to the first.
func twoClusters(t *testing.T, opts ...natskv.Option) (s *natskv.Store, first, second *fixture) {
	t.Helper()
	named := func(o *server.Options) { o.ServerName = "n1" }
	var sides []*fixture
	var urls []string
	for range 2 {
		side := StartServer(t, named)
		nc := natsnet.Connect(t, side.ClientURL())
		f := &fixture{TB: t, server: side, nc: nc, js: natsnet.JetStream(t, nc)}
		f.kv = addBucket(t, f.js, func(c *jetstream.KeyValueConfig) { c.Bucket = "ELECTIONS" })
		f.put(testKey, "v")
		sides, urls = append(sides, f), append(urls, side.ClientURL())
		time.Sleep(time.Second) // no two buckets are created at the same time
	}
	nc := natsnet.Connect(t, strings.Join(urls, ","), nats.DontRandomize())
	s = openStore(t, natsnet.JetStream(t, nc), "ELECTIONS", opts...)
	// The store has then known its bucket for longer than clocks may differ.
	time.Sleep(3 * identity.ClockSkew)
	sides[0].read(s, testKey)
	return s, sides[0], sides[1]
}

// TestTwoClusters: with URLs of two clusters, a candidate that loses one must not be elected by the
// other.
func TestTwoClusters(t *testing.T) {
	for name, opts := range map[string][]natskv.Option{"borrowed": nil, "own": {natskv.OwnConnection()}} {
		for _, watched := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, watched %v", name, watched), func(t *testing.T) {
				InBubble(t, func(t *testing.T) { staysWithItsCluster(t, watched, opts) })
			})
		}
	}
}

func staysWithItsCluster(t *testing.T, watched bool, opts []natskv.Option) {
	s, first, second := twoClusters(t, opts...)
	e := first.read(s, testKey)
	h := &pushes{}
	if watched {
		h = watchAll(t, s, testKey)
	}
	restart(t, first.server, func() {
		refusesAll(t, s, e.Version, watched)
		if got, err := second.kv.Get(wait.Context(t), testKey); err != nil || string(got.Value()) != "v" {
			t.Errorf("the other cluster holds %v, %v", got, err)
		}
		for _, e := range h.entries() {
			if e.Lost == nil {
				t.Errorf("an entry of the other cluster was pushed: %+v", e)
			}
		}
	})
	if opts == nil {
		second.server.Shutdown() // no other server takes the client back
	}
	wait.Until(t, "the first cluster is found again", func() bool { return readable(s) })
	v, err := s.CompareAndSwap(wait.Context(t), testKey, e.Version, []byte("mine"))
	first.must(err)
	if watched {
		h.await(t, v)
	}
}

// refusesAll requires that nothing is done on the other cluster, and that the errors explain it. If
// the store has watches, another one asks nothing.
func refusesAll(t *testing.T, s *natskv.Store, last driver.Version, watched bool) {
	t.Helper()
	calls := map[string]func(ctx context.Context) error{
		"swap":    func(ctx context.Context) error { return failure(s.CompareAndSwap(ctx, testKey, last, []byte("mine"))) },
		"read":    func(ctx context.Context) error { return failure(s.Read(ctx, testKey)) },
		"inspect": func(ctx context.Context) error { return failure(s.Inspect(ctx, testLease)) },
	}
	if !watched {
		calls["watch"] = func(ctx context.Context) error { return failure(s.Watch(ctx, testKey, func(driver.Entry) {})) }
	}
	for what, call := range calls {
		wait.Until(t, what+" is refused", func() bool {
			err := call(wait.Context(t))
			if err == nil {
				t.Fatalf("%s was done on the other cluster", what)
			}
			return errors.Is(err, natskv.ErrTwoClusters) && strings.Contains(err.Error(), "restart this process")
		})
	}
}

// atServer returns the findings about the given servers.
func atServer(t *testing.T, s *natskv.Store) []driver.Finding {
	t.Helper()
	found, err := s.Inspect(wait.Context(t), testLease)
	must(t, err)
	var about []driver.Finding
	for _, f := range found {
		if f.Setting == "servers" {
			about = append(about, f)
		}
	}
	return about
}

// TestInspectFindsTwoClusters: at the start the right bucket is not known, and each candidate may
// connect to another one.
func TestInspectFindsTwoClusters(t *testing.T) { InBubble(t, inspectFindsTwoClusters) }

func inspectFindsTwoClusters(t *testing.T) {
	s, _, second := twoClusters(t)
	found := atServer(t, s)
	host := strings.TrimPrefix(second.server.ClientURL(), "nats://")
	if len(found) != 1 || found[0].Severity != driver.Unsafe || !strings.Contains(found[0].Problem, host+", one of the servers given, has another bucket ELECTIONS") {
		t.Errorf("found %v", found)
	}
	second.must(second.js.DeleteKeyValue(wait.Context(t), "ELECTIONS"))
	if found := atServer(t, s); len(found) != 1 || !strings.Contains(found[0].Problem, "has no bucket ELECTIONS") {
		t.Errorf("without the bucket there: %v", found)
	}
	wait.Until(t, "the second cluster has no connections but the test's", func() bool { return second.server.NumClients() == 1 })
}

// TestInspectAsksWithoutJetStream: a server without JetStream belongs to no cluster with JetStream.
func TestInspectAsksWithoutJetStream(t *testing.T) {
	f := newFixture(t)
	other := StartServer(t, WithoutJetStream)
	nc := natsnet.Connect(t, f.server.ClientURL()+","+other.ClientURL(), nats.DontRandomize())
	s := openStore(t, natsnet.JetStream(t, nc), f.kv.Bucket())
	if found := atServer(t, s); len(found) != 1 || !strings.Contains(found[0].Problem, "has no bucket") {
		t.Errorf("found %v", found)
	}
}
