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
)

func TestMet(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1795300000, 7).Add(time.Duration(seconds) * time.Second) }
	info := func(created, now int) streamInfo { return streamInfo{Created: at(created), Now: at(now)} }
	for _, c := range []struct {
		name  string
		then  []streamInfo
		alien bool
		why   string
	}{
		{"the same", []streamInfo{info(0, 100), info(0, 200)}, false, "nothing happened"},
		{"made anew", []streamInfo{info(0, 100), info(150, 200)}, false, "it follows the old one"},
		{"made anew by a clock that is late", []streamInfo{info(0, 100), info(50, 200)}, false, "clocks of a cluster may differ a little"},
		{"another", []streamInfo{info(0, 1000), info(500, 1100)}, true, "both were there at 500"},
		{"an older one", []streamInfo{info(0, 100), info(-500, 200)}, true, "both were there at 0"},
		{"by a nanosecond", []streamInfo{info(0, 1000), {Created: at(0).Add(1), Now: at(1001)}}, true, "time is the name"},
		{"an older answer", []streamInfo{info(0, 1000), info(0, 10), info(500, 1100)}, true, "what was seen once was seen"},
		{"anew, then the old one", []streamInfo{info(0, 100), info(200, 300), info(0, 400)}, true, "it was put back, or is elsewhere"},
		{"old servers", []streamInfo{{}, {}}, false, "they do not say"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m met
			var err error
			for _, i := range c.then {
				err = m.greet(i, 0)
			}
			if alien := errors.Is(err, ErrTwoClusters); alien != c.alien || !alien && err != nil {
				t.Errorf("%v; want an alien %v: %s", err, c.alien, c.why)
			}
		})
	}
}

// twoClusters are two servers that know nothing of each other, with a bucket of the same name and the same sequences, and a
// store that has URLs of both and stands on the first.
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
	backdate(s)
	return s, sides[0], sides[1]
}

// backdate has the store believe that it has known its bucket for longer than clocks may differ.
func backdate(s *Store) {
	m := &s.cells.(*bucket).met
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = m.seen.Add(2 * skew)
}

// TestTwoClusters: with URLs of two clusters, a candidate that loses the one must not be elected by the other.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{"borrowed": nil, "own": {OwnConnection()}} {
		t.Run(name, func(t *testing.T) {
			s, first, second := twoClusters(t, opts...)
			e := first.read(s, testKey)
			h := watchAll(t, s, testKey)
			restart(t, first.server, func() {
				refusesAll(t, s, e.Version)
				if got, err := second.kv.Get(testContext(t), testKey); err != nil || string(got.Value()) != "v" {
					t.Errorf("the other cluster holds %v, %v", got, err)
				}
				if n := len(h.entries()); n > 0 {
					t.Errorf("%d entries of the other cluster were told", n)
				}
			})
			if name == "borrowed" {
				second.server.Shutdown() // nobody else takes it back
			}
			eventually(t, "the first cluster is found again", func() bool { return readable(s) })
			v, err := s.CompareAndSwap(testContext(t), testKey, e.Version, []byte("mine"))
			first.must(err)
			h.await(t, v)
		})
	}
}

// refusesAll requires that nothing is done on the other cluster, and why is told.
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
		eventually(t, c.what+" is refused", func() bool {
			err := c.call(testContext(t))
			if err == nil {
				t.Fatalf("%s was done on the other cluster", c.what)
			}
			return errors.Is(err, ErrTwoClusters) && strings.Contains(err.Error(), "restart this process")
		})
	}
}

// TestRemadeBucket: a bucket that took the place of the known one is for others to judge.
func TestRemadeBucket(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put(testKey, "v")
	f.read(f.store, testKey)
	f.must(f.js.DeleteKeyValue(testContext(t), f.kv.Bucket()))
	addBucket(t, f.js, named(f.kv.Bucket()))
	if e := f.read(f.store, testKey); !e.Absent() {
		t.Errorf("read: %+v", e)
	}
}

// TestReadWhileTheClusterHasNoLeader: it answers for its streams' messages, and describes no stream.
func TestReadWhileTheClusterHasNoLeader(t *testing.T) {
	nc := connect(t, startServer(t, withoutJetStream).ClientURL())
	b := newBucket(newJetStream(t, nc), "B")
	respond(t, nc, "$JS.API.STREAM.INFO.KV_B", `{"error":{"code":503,"err_code":10008,"description":"told so"}}`)
	messages, err := nc.Subscribe("$JS.API.STREAM.MSG.GET.KV_B", func(m *nats.Msg) {
		answer := `{"message":{"seq":7,"data":"dg=="}}`
		if strings.Contains(string(m.Data), "absent") {
			answer = `{"error":{"code":404,"err_code":10037}}`
		}
		_ = m.Respond([]byte(answer))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = messages.Unsubscribe() }()
	if e, err := b.Read(testContext(t), testKey); outcomeOf(err) != open {
		t.Errorf("before the stream was ever described: %+v, %v", e, err)
	}
	info := streamInfo{Created: time.UnixMicro(1795300000000000), Now: time.UnixMicro(1795300001000000)}
	if err := b.met.greet(info, nc.Stats().Reconnects); err != nil {
		t.Fatal(err)
	}
	e, err := b.Read(testContext(t), testKey)
	if err != nil || string(e.Value) != "v" || e.Floor != 1795300000000007 || e.Era != 1795300000000000 {
		t.Errorf("afterwards: %+v, %v", e, err)
	}
	if e, err := b.Read(testContext(t), "absent"); outcomeOf(err) != open {
		t.Errorf("an absence, for which nobody vouches: %+v, %v", e, err)
	}
	if err := b.met.greet(info, nc.Stats().Reconnects+1); err != nil {
		t.Fatal(err)
	}
	if e, err := b.Read(testContext(t), testKey); outcomeOf(err) != open {
		t.Errorf("over another connection: %+v, %v", e, err)
	}
}
