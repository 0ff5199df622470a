package natsd

import (
	"context"
	"crypto/rand"
	"errors"
	randv2 "math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// One is a bucket on one server.
func One() rig.Rig {
	return rig.Rig{Name: "nats", Kind: single, Start: func(t testing.TB, calm bool) rig.Site {
		s, err := Start(t.TempDir())
		rig.Must(t, err)
		t.Cleanup(s.Kill)
		return newSite(t, []*Server{s}, nil, calm)
	}}
}

// Three is a bucket with three replicas. A write may be refused because of another one that is
// still on its way to the replicas.
func Three() rig.Rig {
	start := func(t testing.TB, calm bool) rig.Site {
		c := Shared(t)
		return newSite(t, c.Servers[:], c, calm)
	}
	return rig.Rig{Name: "nats3", Attention: 500 * time.Millisecond, Rules: history.Rules{Hasty: true}, Kind: Clustered(StartCluster), Start: start}
}

// site is a bucket on servers.
type site struct {
	servers []*Server
	cluster *Cluster // nil for one server
	bucket  string
	calm    bool
}

func newSite(t testing.TB, servers []*Server, c *Cluster, calm bool) *site {
	t.Helper()
	s := &site{servers, c, "B" + rand.Text()[:12], calm}
	js := connect(t, s.urls())
	wait.Succeeds(t, "a bucket", func(ctx context.Context) error {
		_, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: s.bucket, History: 1, Storage: jetstream.FileStorage, Replicas: len(servers),
		})
		return err
	})
	if c != nil {
		rig.Must(t, c.Whole(wait.Context(t), s.stream()))
	}
	return s
}

func (s *site) stream() string { return "KV_" + s.bucket }

func (s *site) urls() (all []string) {
	for _, one := range s.servers {
		all = append(all, one.URL())
	}
	return all
}

// connect connects to the first of these URLs, and reconnects soon, to the next.
func connect(t testing.TB, urls []string, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	opts = append([]nats.Option{
		nats.DontRandomize(), nats.IgnoreDiscoveredServers(), nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond),
		nats.Timeout(time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)
	var nc *nats.Conn
	// A busy machine may take longer than the time-out, which is meant for reconnects.
	wait.Succeeds(t, "connect", func(context.Context) (err error) {
		nc, err = nats.Connect(strings.Join(urls, ","), opts...)
		return err
	})
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	rig.Must(t, err)
	return js
}

// Open connects first to the nth server.
func (s *site) Open(t testing.TB, n int) (driver.Store, rig.Way) {
	t.Helper()
	way := relay.Set{}
	var urls []string
	for i := range s.servers {
		server := s.servers[(n+i)%len(s.servers)]
		r, err := relay.New(server.URL())
		rig.Must(t, err)
		t.Cleanup(r.Close)
		way[server.URL()], urls = r, append(urls, r.URL())
	}
	return s.over(t, connect(t, urls)), way
}

func (s *site) over(t testing.TB, js jetstream.JetStream) driver.Store {
	var opts []natskv.Option
	if s.cluster != nil && !s.calm {
		opts = append(opts, natskv.OwnConnection())
	}
	store, err := natskv.Open(wait.Context(t), js, s.bucket, append(opts, natskv.Pristine())...)
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, store.Close()) })
	if s.calm {
		return patient{store}
	}
	return store
}

// patient tries again when replicas refuse because a write is in flight, as they may for a moment
// after it was acknowledged. Elections read then. The kit would take it for a lost version.
type patient struct{ *natskv.Store }

func (p patient) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	for {
		v, err := p.Store.CompareAndSwap(ctx, key, prev, value)
		var api *jetstream.APIError
		if !errors.As(err, &api) || api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequenceConstant {
			return v, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *site) Kit(t testing.TB) drivertest.Harness {
	operator := connect(t, s.urls())
	kv, err := operator.KeyValue(wait.Context(t), s.bucket)
	rig.Must(t, err)
	denied, err := natskv.Open(wait.Context(t), connect(t, s.urls(), nats.UserInfo(Nobody, Nobody)), s.bucket)
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, denied.Close()) })
	return drivertest.Harness{
		Denied: denied,
		Delete: func(ctx context.Context, key string) error { return kv.Delete(ctx, key) },
		Purge: func(ctx context.Context, key string) error { // it leaves no marker
			stream, err := operator.Stream(ctx, s.stream())
			if err != nil {
				return err
			}
			return stream.Purge(ctx, jetstream.WithPurgeSubject("$KV."+s.bucket+"."+key))
		},
	}
}

// control has the signatures of rig.Server.
type control struct{ *Server }

func (c control) Kill() error { c.Server.Kill(); return nil }

func (s *site) Faults() []rig.Fault {
	if s.cluster == nil {
		return rig.Of(func(*randv2.Rand) rig.Server { return control{s.servers[0]} }, 3)
	}
	c := s.cluster
	whole := func(t testing.TB) { rig.Must(t, c.Whole(wait.Context(t), s.stream())) }
	all := []rig.Fault{
		{
			Name: "rolling restart", Why: "each server hands over what it leads", Least: 15 * time.Second,
			Strike: func(_ context.Context, t testing.TB, _ *randv2.Rand) {
				for _, one := range c.Servers {
					rig.Must(t, one.Stop())
					rig.Must(t, one.Start())
					whole(t)
				}
			},
		},
		{
			Name: "any killed", Why: "the servers of a cluster agree, also while one is missing", Least: 5 * time.Second, Quick: true,
			Strike: func(ctx context.Context, t testing.TB, rng *randv2.Rand) {
				rig.Sleep(ctx, time.Second)
				one := c.Servers[rng.IntN(Members)]
				one.Kill()
				rig.Sleep(ctx, time.Second)
				rig.Must(t, one.Start())
				rig.Sleep(ctx, 3*time.Second) // the others need this time to choose a leader
			},
		},
	}
	for _, f := range Falls() {
		all = append(all, rig.Fault{
			Name: "leader " + f.Name, Why: "what was acknowledged is on one more server, and what was not may come to light later",
			Least: 18 * time.Second, Unknowns: 4, Rules: f.rules(), Quick: f.Name == "killed",
			Strike: func(ctx context.Context, t testing.TB, _ *randv2.Rand) {
				rig.Sleep(ctx, time.Second)
				leader, err := c.Leader(wait.Context(t), s.stream())
				rig.Must(t, err)
				rig.Must(t, f.Fall(c, leader))
				rig.Sleep(ctx, 13*time.Second)
				rig.Must(t, f.Rise(c, leader))
				whole(t)
			},
		})
	}
	return all
}

// Fall is a fault of one server of a cluster, with its end.
type Fall struct {
	Name       string
	Fall, Rise func(*Cluster, *Server) error
	// believes: the server goes on believing that it leads its streams, for up to ten seconds or
	// until it receives messages of the others.
	believes bool
}

// rules are those of a cluster. A server that believes that it leads still answers reads from its
// own copy. It refuses a write, or keeps it unacknowledged, while another server that also receives
// the write applies it.
func (f Fall) rules() history.Rules { return history.Rules{Replayed: f.believes, Stale: f.believes} }

// Falls returns the faults of one server of a cluster.
func Falls() []Fall {
	start := func(_ *Cluster, s *Server) error { return s.Start() }
	return []Fall{
		{"shut down", func(_ *Cluster, s *Server) error { return s.Stop() }, start, false},
		{"killed", func(_ *Cluster, s *Server) error { s.Kill(); return nil }, start, false},
		{
			"frozen", func(_ *Cluster, s *Server) error { return s.Pause() },
			func(_ *Cluster, s *Server) error { return s.Resume() }, true,
		},
		{
			"parted", func(c *Cluster, s *Server) error { c.Part(s); return nil },
			func(c *Cluster, s *Server) error { c.Heal(s); return nil }, true,
		},
	}
}
