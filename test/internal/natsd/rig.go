package natsd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rotation"
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
	return rig.Rig{
		Name: "nats3", Kind: Clustered(StartCluster), Shared: true, SameClients: true, Start: start,
		Attention: 500 * time.Millisecond, Rules: history.Rules{Hasty: true},
	}
}

// site is a bucket on servers.
type site struct {
	servers []*Server
	cluster *Cluster // nil for one server
	bucket  string
	calm    bool
	down    *Server // new clients avoid it
}

func newSite(t testing.TB, servers []*Server, c *Cluster, calm bool) *site {
	t.Helper()
	s := &site{servers: servers, cluster: c, bucket: "B" + rand.Text()[:12], calm: calm}
	js := Connect(t, s.urls())
	wait.Succeeds(t, "a bucket", func(ctx context.Context) error { return s.create(ctx, js) })
	if c != nil {
		rig.Must(t, c.Whole(wait.Context(t), s.stream()))
	}
	return s
}

// create creates the bucket as `nats kv add` does: its sequences begin at 1.
func (s *site) create(ctx context.Context, js jetstream.JetStream) error {
	_, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: s.bucket, History: 1, Storage: jetstream.FileStorage, Replicas: len(s.servers),
	})
	return err
}

func (s *site) stream() string { return "KV_" + s.bucket }

// up returns the servers that work.
func (s *site) up() []*Server {
	return slices.DeleteFunc(slices.Clone(s.servers), func(one *Server) bool { return one == s.down })
}

func (s *site) urls() (all []string) {
	for _, one := range s.up() {
		all = append(all, one.URL())
	}
	return all
}

// Connect connects to the first of these URLs, and reconnects soon, to the next.
func Connect(t testing.TB, urls []string, opts ...nats.Option) jetstream.JetStream {
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
	working := s.up()
	for i := range working {
		server := working[(n+i)%len(working)]
		r := rig.Relay(t, server.URL())
		way[server.URL()], urls = r, append(urls, r.URL())
	}
	return s.over(t, Connect(t, urls)), way
}

func (s *site) over(t testing.TB, js jetstream.JetStream) driver.Store {
	var opts []natskv.Option
	switch {
	case s.calm:
		opts = append(opts, natskv.Pristine()) // no operator recreates the bucket
	case s.cluster != nil:
		opts = append(opts, natskv.OwnConnection())
	}
	store, err := natskv.Open(wait.Context(t), js, s.bucket, opts...)
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
	operator := Connect(t, s.urls())
	if s.cluster != nil {
		s.serves(t, operator)
	}
	kv, err := operator.KeyValue(wait.Context(t), s.bucket)
	rig.Must(t, err)
	denied, err := natskv.Open(wait.Context(t), Connect(t, s.urls(), nats.UserInfo(Nobody, Nobody)), s.bucket)
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, denied.Close()) })
	h := drivertest.Harness{
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
	if s.cluster == nil && !s.calm {
		h.Recreate = func(ctx context.Context) error {
			if err := operator.DeleteKeyValue(ctx, s.bucket); err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) {
				return err
			}
			// A server may not have removed a stream yet that was just deleted.
			return wait.Poll(ctx, func(ctx context.Context) error { return s.create(ctx, operator) })
		}
	}
	return h
}

// Restores is for one server: replicas are restored in the same way.
func (s *site) Restores() bool { return s.cluster == nil }

// Backup takes a snapshot of the bucket's stream.
func (s *site) Backup(t testing.TB) func() {
	ctx, dir := wait.Context(t), t.TempDir()
	m, err := jsm.New(Connect(t, s.urls()).Conn())
	rig.Must(t, err)
	stream, err := m.LoadStream(s.stream())
	rig.Must(t, err)
	_, err = stream.SnapshotToDirectory(ctx, dir)
	rig.Must(t, err)
	return func() {
		rig.Must(t, stream.Delete())
		wait.Succeeds(t, "the backup is restored", func(context.Context) error {
			_, _, err := m.RestoreSnapshotFromDirectory(ctx, s.stream(), dir)
			return err
		})
	}
}

// serves waits until the cluster answers again after a fault. It may find its new leader seconds
// after the stream has, and lose requests until then.
func (s *site) serves(t testing.TB, js jetstream.JetStream) {
	rig.Must(t, s.cluster.Governed(wait.Context(t), s.up()))
	store := s.over(t, js)
	for _, key := range []string{"probe", "absent"} {
		wait.Succeeds(t, "a look at "+key, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			e, err := store.Read(ctx, key)
			if err == nil && key == "probe" {
				_, err = store.CompareAndSwap(ctx, key, e.Version, []byte("x"))
			}
			return err
		})
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
			Name: "rolling restart", Why: "each server hands over what it leads", Least: 15 * time.Second, Serves: true,
			Fall: func(t testing.TB, _ *randv2.Rand) func() {
				for _, one := range c.Servers {
					rig.Must(t, one.Stop())
					rig.Must(t, one.Start())
					whole(t)
				}
				return func() {}
			},
		},
		{
			// The others need three seconds to choose a leader.
			Name: "any killed", Why: "the servers of a cluster agree, also while one is missing", Quick: true,
			Before: 3 * time.Second, Lasts: time.Second, Least: 5 * time.Second,
			Fall: func(t testing.TB, rng *randv2.Rand) func() {
				one := c.Servers[rng.IntN(Members)]
				one.Kill()
				return func() { rig.Must(t, one.Start()) }
			},
		},
	}
	for _, f := range Falls() {
		fall := func(pick func(leader *Server) *Server) func(testing.TB, *randv2.Rand) func() {
			return func(t testing.TB, _ *randv2.Rand) func() {
				leader, err := c.Leader(wait.Context(t), s.stream())
				rig.Must(t, err)
				one := pick(leader)
				rig.Must(t, f.Fall(c, one))
				s.down = one
				return func() {
					rig.Must(t, f.Rise(c, one))
					whole(t)
					s.down = nil
				}
			}
		}
		all = append(all, rig.Fault{
			Name: "leader " + f.Name, Why: "what was acknowledged is on one more server, and what was not may come to light later",
			Before: time.Second, Lasts: 13 * time.Second, Least: 18 * time.Second, Unknowns: 4,
			Rules: f.rules(), Quick: f.Name == "killed", Serves: true,
			Fall: fall(func(leader *Server) *Server { return leader }),
		}, rig.Fault{
			Name: "follower " + f.Name, Why: "the leader of the stream and one more server store each write",
			Before: time.Second, Lasts: 13 * time.Second, Least: 18 * time.Second, Rules: f.rules(),
			Fall: fall(func(leader *Server) *Server { return c.Others(leader)[0] }),
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

// Mistakes are found when the bucket is opened. Users connect by themselves.
func (s *site) Mistakes(testing.TB) []rig.Client {
	return []rig.Client{{
		Name: "missing bucket", Fails: "open", Says: rig.Says("nats kv add"),
		Open: func(t testing.TB) (driver.Store, error) {
			store, err := natskv.Open(wait.Context(t), Connect(t, s.urls()), "no-such-bucket")
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { rig.Must(t, store.Close()) })
			return store, nil
		},
	}}
}

// Rights returns none: the tests beside package natskv try each right.
func (s *site) Rights(testing.TB) []rig.Client { return nil }

// Rotations replaces the password in a context of the nats command, and loads the configuration of
// a server of its own again. The server then ends the connections of users whose password has
// changed.
func (s *site) Rotations(t testing.TB) []*rotation.Play {
	dir := t.TempDir()
	config := filepath.Join(dir, "server.conf")
	configure := func(secret string) *server.Options {
		text := fmt.Sprintf(`listen: "127.0.0.1:-1", jetstream: {store_dir: %q}, accounts: {A: {jetstream: enabled, users: [
			{user: admin, password: admin}, {user: member, password: %q}]}}`, filepath.Join(dir, "data"), secret)
		rig.Must(t, os.WriteFile(config, []byte(text), 0o600))
		o, err := server.ProcessConfigFile(config)
		rig.Must(t, err)
		o.NoLog, o.NoSigs = true, true
		return o
	}
	own, err := server.NewServer(configure("one"))
	rig.Must(t, err)
	own.Start()
	t.Cleanup(func() {
		own.Shutdown()
		own.WaitForShutdown()
	})
	wait.Until(t, "the server starts", func() bool { return own.ReadyForConnections(time.Second) })
	js := Connect(t, []string{own.ClientURL()}, nats.UserInfo("admin", "admin"))
	store, err := natskv.Open(t.Context(), js, "ELECTIONS", natskv.Create())
	rig.Must(t, err)
	t.Cleanup(func() { _ = store.Close() })

	home := filepath.Join(dir, "nats", "context")
	rig.Must(t, os.MkdirAll(home, 0o700))
	file, hand := rotation.File(t, "prod.json", fmt.Sprintf(`{"url": %q, "user": "member", "password": "SECRET"}`, own.ClientURL()))
	rig.Must(t, os.Symlink(file, filepath.Join(home, "prod.json")))
	return []*rotation.Play{{
		Name:    "context",
		Args:    []string{"--context", "prod/ELECTIONS"},
		Env:     []string{"XDG_CONFIG_HOME=" + dir},
		Store:   store,
		Accept:  func(secret string) { rig.Must(t, own.ReloadOptions(configure(secret))) },
		Hand:    hand,
		Refusal: "the server refuses the credentials",
	}}
}

// single is one server, for programs.
var single = rig.Kind{
	Title:   "one NATS server process (file storage, one replica) over loopback and a relay for each candidate",
	URL:     func(address string) string { return scheme + address + "/ELECTIONS?pristine=true" },
	Connect: dial,
	Start: func(_ context.Context, dir string) (rig.Running, error) {
		s, err := Start(dir)
		if err != nil {
			return nil, err
		}
		return Running{control{s}, []*Server{s}, nil}, nil
	},
}

// Clustered is a cluster for programs, which one of these functions starts: StartCluster or
// StartPartible.
func Clustered(start func(dir string) (*Cluster, error)) rig.Kind {
	return rig.Kind{
		Title: "three NATS servers", Connect: dial,
		Start: func(ctx context.Context, dir string) (rig.Running, error) {
			c, err := start(dir)
			if err != nil {
				return nil, err
			}
			if err := c.Ready(ctx); err != nil {
				c.Kill()
				return nil, err
			}
			return Running{rig.NoServer, c.Servers[:], c}, nil
		},
	}
}

// Alone starts one server for the length of a test.
func Alone(t testing.TB) *Server {
	t.Helper()
	s, err := Start(t.TempDir())
	rig.Must(t, err)
	t.Cleanup(s.Kill)
	return s
}

const scheme = "nats://"

// Running is one server, or a cluster.
type Running struct {
	rig.Server
	All     []*Server
	Cluster *Cluster // nil for one server
}

// Addresses returns HOST:PORT of each server.
func (r Running) Addresses() (all []string) {
	for _, s := range r.All {
		all = append(all, strings.TrimPrefix(s.URL(), scheme))
	}
	return all
}

// Member is one server of a cluster.
type Member struct {
	control
	cluster *Cluster
}

// Part cuts the server off from the others, and Heal ends that.
func (m Member) Part() { m.cluster.Part(m.Server) }

// Heal is described at Part.
func (m Member) Heal() { m.cluster.Heal(m.Server) }

// Each returns the servers of a cluster one by one.
func (r Running) Each() (all []rig.Server) {
	for _, s := range r.All {
		all = append(all, Member{control{s}, r.Cluster})
	}
	return all
}

// URLs returns the URLs of the servers, separated by commas.
func (r Running) URLs() string { return urls(r.Addresses()) }

func urls(addresses []string) string { return scheme + strings.Join(addresses, ","+scheme) }

// Create creates a bucket with a replica on each server.
func (r Running) Create(ctx context.Context, bucket string) error {
	err := ask(ctx, strings.Split(r.URLs(), ","), "create "+bucket, func(ctx context.Context, js jetstream.JetStream) error {
		_, err := natskv.Open(ctx, js, bucket, natskv.Create(natskv.Replicas(len(r.All))))
		return err
	})
	if err != nil || r.Cluster == nil {
		return err
	}
	return r.Cluster.Whole(ctx, "KV_"+bucket)
}

// End kills the servers.
func (r Running) End() {
	if r.Cluster != nil {
		r.Cluster.Kill()
		return
	}
	r.All[0].Kill()
}

// dial opens one connection. With a cluster, only the elections use it.
func dial(c rig.Connector) (rig.Opener, error) {
	name, opts := c.ID, []natskv.Option{natskv.Pristine()}
	if len(c.Addresses) > 1 {
		name, opts = name+" (base)", append(opts, natskv.OwnConnection(nats.Name(name)))
	}
	nc, err := nats.Connect(urls(c.Addresses), nats.Name(name), nats.DontRandomize(),
		nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.SetCustomDialer(c))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	return func(ctx context.Context, bucket string) (driver.Store, error) {
		return natskv.Open(ctx, js, bucket, opts...)
	}, err
}
