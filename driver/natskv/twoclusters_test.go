//go:build integration

package natskv

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/identity"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// twoClusters returns two servers that do not know each other, with a bucket of the same name and
// the same sequences. The store has URLs of both and is connected to the first.
func twoClusters(t *testing.T, opts ...Option) (s *Store, first, second *fixture) {
	t.Helper()
	named := func(o *server.Options) { o.ServerName = "n1" }
	var sides []*fixture
	var urls []string
	for range 2 {
		side := startServer(t, named)
		nc := connect(t, side.ClientURL())
		f := &fixture{TB: t, server: side, nc: nc, js: newJetStream(t, nc)}
		f.kv = addBucket(t, f.js, func(c *jetstream.KeyValueConfig) { c.Bucket = "ELECTIONS" })
		f.put(testKey, "v")
		sides, urls = append(sides, f), append(urls, side.ClientURL())
	}
	nc := connect(t, strings.Join(urls, ","), nats.DontRandomize())
	s = openStore(t, newJetStream(t, nc), "ELECTIONS", opts...)
	backdate(t, s)
	return s, sides[0], sides[1]
}

// backdate makes the store believe that it has known its bucket for longer than clocks may differ.
func backdate(t *testing.T, s *Store) {
	t.Helper()
	b := s.cells.(*bucket)
	created, _ := b.identity.Met(b.conn.Number())
	for ahead := range time.Duration(3) { // a server's time is not believed for more at once
		if err := b.identity.Check(created, time.Now().Add(ahead*identity.ClockSkew), b.conn.Number()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTwoClusters: with URLs of two clusters, a candidate that loses one must not be elected by the
// other.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{"borrowed": nil, "own": {OwnConnection()}} {
		t.Run(name, func(t *testing.T) {
			s, first, second := twoClusters(t, opts...)
			e := first.read(s, testKey)
			h := watchAll(t, s, testKey)
			restart(t, first.server, func() {
				refusesAll(t, s, e.Version)
				if got, err := second.kv.Get(wait.Context(t), testKey); err != nil || string(got.Value()) != "v" {
					t.Errorf("the other cluster holds %v, %v", got, err)
				}
				for _, e := range h.entries() {
					if e.Lost == nil {
						t.Errorf("an entry of the other cluster was pushed: %+v", e)
					}
				}
			})
			if name == "borrowed" {
				second.server.Shutdown() // no other server takes the client back
			}
			wait.Until(t, "the first cluster is found again", func() bool { return readable(s) })
			v, err := s.CompareAndSwap(wait.Context(t), testKey, e.Version, []byte("mine"))
			first.must(err)
			h.await(t, v)
		})
	}
}

// refusesAll requires that nothing is done on the other cluster, and that the errors explain it.
func refusesAll(t *testing.T, s *Store, last driver.Version) {
	t.Helper()
	for _, c := range []struct {
		what string
		call func(ctx context.Context) error
	}{
		{"swap", func(ctx context.Context) error {
			_, err := s.CompareAndSwap(ctx, testKey, last, []byte("mine"))
			return err
		}},
		{"read", func(ctx context.Context) error {
			_, err := s.Read(ctx, testKey)
			return err
		}},
		{"watch", func(ctx context.Context) error {
			_, err := newStore(s.cells).Watch(ctx, testKey, func(driver.Entry) {})
			return err
		}},
		{"inspect", func(ctx context.Context) error {
			_, err := s.Inspect(ctx, testLease)
			return err
		}},
	} {
		wait.Until(t, c.what+" is refused", func() bool {
			err := c.call(wait.Context(t))
			if err == nil {
				t.Fatalf("%s was done on the other cluster", c.what)
			}
			return errors.Is(err, ErrTwoClusters) && strings.Contains(err.Error(), "restart this process")
		})
	}
}

// TestRecreatedBucket: the store does not refuse a bucket that replaced the known one.
func TestRecreatedBucket(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put(testKey, "v")
	f.read(f.store, testKey)
	f.must(f.js.DeleteKeyValue(wait.Context(t), f.kv.Bucket()))
	addBucket(t, f.js, named(f.kv.Bucket()))
	if e := f.read(f.store, testKey); !e.Absent() {
		t.Errorf("read: %+v", e)
	}
}
