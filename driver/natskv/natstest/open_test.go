//go:build integration

package natstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// configured runs a server from a configuration file.
func configured(t testing.TB, text string, change ...func(*server.Options)) *server.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	o, err := server.ProcessConfigFile(file)
	must(t, err)
	return StartServer(t, func(into *server.Options) {
		plain := *into
		*into = *o
		into.Host, into.Port, into.StoreDir, into.DontListen = plain.Host, plain.Port, plain.StoreDir, plain.DontListen
		into.NoSigs = true
		for _, c := range change {
			c(into)
		}
	})
}

const accounts = `
jetstream: {}
accounts {
	WITH: { jetstream: enabled, users: [ { user: with, password: x } ] }
	WITHOUT: { users: [ { user: without, password: x } ] }
}`

// TestOpenErrors: the kind and the text of each error show an operator how to fix it.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		make func(t *testing.T) (js jetstream.JetStream, bucket string)
		kind error
		text []string
	}{
		{"name", func(t *testing.T) (jetstream.JetStream, string) { return nil, "a.b" },
			jetstream.ErrInvalidBucketName, []string{`"a.b"`, "letters"}},
		{"empty name", func(t *testing.T) (jetstream.JetStream, string) { return nil, "" },
			jetstream.ErrInvalidBucketName, nil},
		{"no bucket", func(t *testing.T) (jetstream.JetStream, string) {
			return natsnet.JetStream(t, natsnet.Connect(t, StartServer(t).ClientURL())), "ELECTIONS"
		}, jetstream.ErrBucketNotFound, []string{"nats kv add ELECTIONS --history 1 --storage file", "natskv.Create"}},
		{"no JetStream", func(t *testing.T) (jetstream.JetStream, string) {
			return natsnet.JetStream(t, natsnet.Connect(t, StartServer(t, WithoutJetStream).ClientURL())), "B"
		}, jetstream.ErrJetStreamNotEnabled, []string{"jetstream {}", "-js", "domain"}},
		{"no JetStream in the account", func(t *testing.T) (jetstream.JetStream, string) {
			return natsnet.JetStream(t, natsnet.Connect(t, configured(t, accounts).ClientURL(), nats.UserInfo("without", "x"))), "B"
		}, jetstream.ErrJetStreamNotEnabledForAccount, []string{"jetstream: enabled", "account"}},
		{"wrong domain", func(t *testing.T) (jetstream.JetStream, string) {
			js, err := jetstream.NewWithDomain(natsnet.Connect(t, StartServer(t).ClientURL()), "hub")
			must(t, err)
			return js, "B"
		}, jetstream.ErrJetStreamNotEnabled, []string{"domain"}},
		{"no server", func(t *testing.T) (jetstream.JetStream, string) {
			nc, err := nats.Connect(fmt.Sprint("nats://127.0.0.1:", FreePort(t)), nats.RetryOnFailedConnect(true))
			must(t, err)
			t.Cleanup(nc.Close)
			return natsnet.JetStream(t, nc), "B"
		}, nil, []string{"check the URL"}},
		{"closed connection", func(t *testing.T) (jetstream.JetStream, string) {
			nc := natsnet.Connect(t, StartServer(t).ClientURL())
			nc.Close()
			return natsnet.JetStream(t, nc), "B"
		}, nats.ErrConnectionClosed, []string{"check the URL"}},
		{"no right", func(t *testing.T) (jetstream.JetStream, string) {
			return natsnet.JetStream(t, newRightsFixture(t, nil, "_INBOX.>").user), "B"
		}, driver.ErrDenied, []string{"publish", "$JS.API.STREAM.INFO.KV_B"}},
		{"no answer", func(t *testing.T) (jetstream.JetStream, string) {
			nc := natsnet.Connect(t, StartServer(t, WithoutJetStream).ClientURL())
			if _, err := nc.SubscribeSync("$JS.API.>"); err != nil {
				t.Fatal(err)
			}
			return natsnet.JetStream(t, nc), "B"
		}, context.DeadlineExceeded, []string{"does not answer"}},
		{"no bucket of that stream", func(t *testing.T) (jetstream.JetStream, string) {
			f := newFixture(t)
			_, err := f.js.CreateStream(wait.Context(t), jetstream.StreamConfig{Name: "KV_S", Subjects: []string{"s"}})
			f.must(err)
			return f.js, "S"
		}, jetstream.ErrBadBucket, []string{"KV_S", "$KV.S.>"}},
		{"mirror", func(t *testing.T) (jetstream.JetStream, string) {
			f := newFixture(t)
			mirror := addBucket(t, f.js, func(c *jetstream.KeyValueConfig) {
				c.Mirror = &jetstream.StreamSource{Name: f.kv.Bucket()}
			})
			return f.js, mirror.Bucket()
		}, jetstream.ErrBadBucket, []string{"mirror", "original"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			js, bucket := c.make(t)
			limit := wait.Left()
			if c.kind == context.DeadlineExceeded { //nolint:errorlint // the exact kind
				limit = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := natskv.Open(ctx, js, bucket)
			if err == nil {
				t.Fatal("it was opened")
			}
			if c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v; want one that is %q", err, c.kind)
			}
			for _, text := range append(c.text, bucket) {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v; want it to say %q", err, text)
				}
			}
		})
	}
}

// TestOpenCreates creates a bucket for which Inspect finds only that there is a single server.
func TestOpenCreates(t *testing.T) {
	t.Parallel()
	js := natsnet.JetStream(t, natsnet.Connect(t, StartServer(t).ClientURL()))
	s := openStore(t, js, "ELECTIONS", natskv.Create(natskv.MaxBytes(1<<20)))
	kv, err := js.KeyValue(wait.Context(t), "ELECTIONS")
	must(t, err)
	status, err := kv.Status(wait.Context(t))
	must(t, err)
	c := status.Config()
	if c.Storage != jetstream.FileStorage || c.History != 1 || c.TTL != 0 || c.Replicas != 1 || c.MaxBytes != 1<<20 {
		t.Errorf("created %+v", c)
	}
	if status.LimitMarkerTTL() != 2*time.Hour {
		t.Errorf("markers are kept for %v; want 2h", status.LimitMarkerTTL())
	}
	found, err := s.Inspect(wait.Context(t), 15*time.Second)
	must(t, err)
	for _, f := range found {
		if f.Severity != driver.Advice {
			t.Errorf("found %v", f)
		}
	}
}

// TestOpenKeeps: an existing bucket keeps its owner's settings.
func TestOpenKeeps(t *testing.T) {
	f := newFixture(t, withTTL(time.Hour), func(c *jetstream.KeyValueConfig) { c.History = 5 })
	seq := f.put(testKey, "v")
	s := openStore(t, f.js, f.kv.Bucket(), natskv.Create(natskv.Replicas(3)))
	if e := f.read(s, testKey); e.Version != versionOf(seq) {
		t.Errorf("read: %+v", e)
	}
	status, err := f.kv.Status(wait.Context(t))
	f.must(err)
	if status.TTL() != time.Hour || status.History() != 5 {
		t.Errorf("the bucket was changed: %+v", status.Config())
	}
}

// TestOpenCreatesOnce: candidates start together.
func TestOpenCreatesOnce(t *testing.T) {
	t.Parallel()
	s := StartServer(t)
	var all sync.WaitGroup
	for i := range 8 {
		js := natsnet.JetStream(t, natsnet.Connect(t, s.ClientURL()))
		all.Go(func() {
			if _, err := natskv.Open(wait.Context(t), js, "ELECTIONS", natskv.Create(natskv.MaxBytes(int64(1<<20+i)))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestOpenCannotCreate(t *testing.T) {
	t.Parallel()
	js := natsnet.JetStream(t, natsnet.Connect(t, StartServer(t).ClientURL()))
	_, err := natskv.Open(wait.Context(t), js, "B", natskv.Create(natskv.Replicas(3)))
	if err == nil || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("three replicas on one server: %v", err)
	}
}

// TestInspectBuckets checks real buckets, for the names and units of the settings.
func TestInspectBuckets(t *testing.T) {
	const seqs = "warning: first_seq: the bucket counts its writes from 1"
	f := newFixture(t)
	for _, c := range []struct {
		name   string
		change func(*jetstream.KeyValueConfig)
		want   []string
	}{
		{"plain", func(*jetstream.KeyValueConfig) {}, []string{"advice: replicas", seqs}},
		{"memory", inMemory, []string{"advice: replicas", "unsafe: storage", seqs}},
		{"nats kv add --ttl 10s", withTTL(10 * time.Second),
			[]string{"advice: replicas", seqs, "unsafe: ttl: a record expires after 10s, within the lease of 15s",
				"advice: limit_marker_ttl"}},
		{"nats kv add --ttl 5m", withTTL(5 * time.Minute),
			[]string{"advice: replicas", seqs, "advice: ttl", "advice: limit_marker_ttl"}},
		{"markers", func(c *jetstream.KeyValueConfig) { c.TTL, c.LimitMarkerTTL = time.Hour, time.Minute },
			[]string{"advice: replicas", seqs, "advice: ttl"}},
		{"small", func(c *jetstream.KeyValueConfig) { c.MaxValueSize, c.MaxBytes, c.History = 1024, 1<<20, 3 },
			[]string{"advice: replicas", seqs, "warning: max_value_size", "advice: max_bytes", "advice: history: 2 old records"}},
		{"sources", func(c *jetstream.KeyValueConfig) { c.Sources = []*jetstream.StreamSource{{Name: f.kv.Bucket()}} },
			[]string{"advice: replicas", seqs, "unsafe: sources"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			kv := addBucket(t, f.js, c.change)
			for _, s := range []*natskv.Store{
				openStore(t, f.js, kv.Bucket()), handled(t, f.nc, kv.Bucket()), handledLegacy(t, f.nc, kv.Bucket()),
			} {
				found, err := s.Inspect(wait.Context(t), testLease)
				must(t, err)
				if len(found) != len(c.want) {
					t.Errorf("found %v; want %q", found, c.want)
					continue
				}
				for i, want := range c.want {
					if !strings.HasPrefix(found[i].String(), want) {
						t.Errorf("found %q; want %q", found[i], want)
					}
				}
			}
		})
	}
}

// TestInspectMirror: a handle can be for a mirror, which Open refuses.
func TestInspectMirror(t *testing.T) {
	f := newFixture(t)
	mirror := addBucket(t, f.js, func(c *jetstream.KeyValueConfig) { c.Mirror = &jetstream.StreamSource{Name: f.kv.Bucket()} })
	found, err := natskv.FromKeyValue(mirror).Inspect(wait.Context(t), testLease)
	f.must(err)
	isMirror := func(f driver.Finding) bool { return f.Setting == "mirror" && f.Severity == driver.Unsafe }
	if !slices.ContainsFunc(found, isMirror) {
		t.Errorf("found %v; want that it is a mirror", found)
	}
}

// TestInspectInCluster checks for abilities of a cluster that a bucket does not use. It also checks
// the findings about several servers for one bucket, one of them closed.
func TestInspectInCluster(t *testing.T) {
	long(t)
	t.Parallel()
	servers := startCluster(t)
	js := natsnet.JetStream(t, natsnet.Connect(t, servers[0].ClientURL()))
	urls := "nats://127.0.0.1:1"
	for _, s := range servers {
		urls += "," + s.ClientURL()
	}
	for name, c := range map[string]struct {
		bucket []func(*jetstream.KeyValueConfig)
		want   []string
	}{
		"three replicas": {[]func(*jetstream.KeyValueConfig){inThree}, []string{"warning: first_seq"}},
		"one replica": {nil, []string{
			"warning: replicas: the loss of one server stops all elections, though there is a cluster (nats kv edit", "warning: first_seq"}},
		"one replica in memory": {[]func(*jetstream.KeyValueConfig){inMemory}, []string{
			"warning: replicas", "unsafe: storage: a restart of the server forgets all records and terms", "warning: first_seq"}},
		"three replicas in memory": {[]func(*jetstream.KeyValueConfig){inMemory, inThree}, []string{
			"warning: storage: a restart of all servers forgets", "warning: first_seq"}},
	} {
		t.Run(name, func(t *testing.T) {
			kv := addBucket(t, js, c.bucket...)
			s := openStore(t, natsnet.JetStream(t, natsnet.Connect(t, urls)), kv.Bucket(), natskv.OwnConnection())
			found, err := s.Inspect(wait.Context(t), testLease)
			if err != nil || len(found) != len(c.want) {
				t.Fatalf("found %v, %v; want %q", found, err, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(found[i].String(), want) {
					t.Errorf("found %q; want %q", found[i], want)
				}
			}
		})
	}
}

// TestCreateInCluster: the sequences continue from the first one, under any leader of the stream.
func TestCreateInCluster(t *testing.T) {
	long(t)
	t.Parallel()
	nc := natsnet.Connect(t, startCluster(t)[0].ClientURL())
	f := &fixture{TB: t, nc: nc, js: natsnet.JetStream(t, nc)}
	f.kv = created(t, f.js, "ELECTIONS", natskv.Replicas(3))
	s := openStore(t, f.js, "ELECTIONS", natskv.Pristine())
	e := f.read(s, testKey)
	if !e.Pristine || e.Floor < 1<<50 {
		t.Fatalf("a fresh bucket reads %+v", e)
	}
	for i := range 20 {
		wait.Until(t, "a write is applied", func() bool {
			v, err := s.CompareAndSwap(wait.Context(t), testKey, e.Version, fmt.Append(nil, i))
			if err == nil && v != versionOf(e.Floor+1) {
				t.Fatalf("version %s after %+v", v, e)
			}
			// A write without an answer may have been applied.
			now, failed := s.Read(wait.Context(t), testKey)
			if failed == nil && now.Floor < e.Floor {
				t.Fatalf("%+v after %+v", now, e)
			}
			if failed == nil {
				e = now
			}
			return string(e.Value) == fmt.Sprint(i)
		})
		if i%5 == 0 {
			_, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN.KV_ELECTIONS", nil, wait.Left())
			f.must(err)
		}
	}
}

// startCluster runs three servers in this process.
func startCluster(t *testing.T) []*server.Server {
	t.Helper()
	var routes []string
	for range 3 {
		routes = append(routes, fmt.Sprint("nats://127.0.0.1:", FreePort(t)))
	}
	var all []*server.Server
	for _, route := range server.RoutesFromStr(strings.Join(routes, ",")) {
		port, _ := strconv.Atoi(route.Port())
		all = append(all, StartServer(t, func(o *server.Options) {
			o.ServerName, o.Routes = "n"+route.Port(), server.RoutesFromStr(strings.Join(routes, ","))
			o.Cluster = server.ClusterOpts{Name: "C", Host: "127.0.0.1", Port: port, NoAdvertise: true}
		}))
	}
	wait.Until(t, "the cluster has a leader that knows all", func() bool {
		return slices.ContainsFunc(all, func(s *server.Server) bool {
			return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(all)
		})
	})
	return all
}

func inThree(c *jetstream.KeyValueConfig) { c.Replicas = 3 }

// TestOwnOptionsCanBeChanged: the caller's options override ours, and the caller's handlers are
// called as well.
func TestOwnOptionsCanBeChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var lost natsnet.Errors
	var used *nats.Options
	look := func(o *nats.Options) error { used = o; return nil }
	openStore(t, f.js, f.kv.Bucket(), natskv.OwnConnection(nats.Name("mine"), nats.MaxPingsOutstanding(5), lost.OfLosses(), look))
	if used.Name != "mine" || used.MaxPingsOut != 5 {
		t.Errorf("connected with %+v", used)
	}
	clients, err := f.server.Connz(nil)
	f.must(err)
	if !slices.ContainsFunc(clients.Conns, func(c *server.ConnInfo) bool { return c.Name == "mine" }) {
		t.Errorf("no client has the name: %+v", clients.Conns)
	}
	restart(t, f.server, func() {})
	wait.Until(t, "the caller's handler is called for the loss", func() bool { return len(lost.All()) > 0 })
	broken := errors.New("broken")
	_, err = natskv.Open(wait.Context(t), f.js, f.kv.Bucket(), natskv.OwnConnection(func(*nats.Options) error { return broken }))
	if !errors.Is(err, broken) {
		t.Errorf("with an option that fails: %v", err)
	}
}

// TestOwnConnectionIsApart: the own connection no longer needs the given one, and ends with the
// store.
func TestOwnConnectionIsApart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	given := natsnet.Connect(t, f.server.ClientURL(), nats.CustomInboxPrefix("_MINE"))
	js := natsnet.JetStream(t, given)
	given.Close()
	s := openStore(t, js, f.kv.Bucket(), natskv.OwnConnection())
	h := watchAll(t, s, testKey)
	h.await(t, versionOf(f.put(testKey, "v")))
	if e := f.read(s, testKey); string(e.Value) != "v" {
		t.Errorf("read: %+v", e)
	}
	before := f.server.NumClients()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	wait.Until(t, "the connection ends with the store", func() bool { return f.server.NumClients() < before })
	if _, err := s.Read(wait.Context(t), testKey); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestOwnConnectionFails: no bucket is opened, and no connection is left behind.
func TestOwnConnectionFails(t *testing.T) {
	t.Parallel()
	s := StartServer(t, func(o *server.Options) { o.Username, o.Password = "user", "x" })
	given := natsnet.Connect(t, s.ClientURL(), nats.UserInfo("user", "x"))
	js := natsnet.JetStream(t, given)
	if _, err := natskv.Open(wait.Context(t), js, "B", natskv.OwnConnection()); !errors.Is(err, jetstream.ErrBucketNotFound) {
		t.Errorf("no bucket: %v", err)
	}
	wait.Until(t, "the connection is closed", func() bool { return s.NumClients() == 1 })
	_, err := natskv.Open(wait.Context(t), js, "B", natskv.OwnConnection(nats.UserInfo("user", "wrong")))
	if c, ok := errors.AsType[*natskv.ConnectError](err); !errors.Is(err, driver.ErrDenied) || !ok || errors.Is(c.Err, driver.ErrDenied) || !errors.Is(c.Err, nats.ErrAuthorization) {
		t.Errorf("wrong credentials: %v", err)
	}
	s.Shutdown()
	if _, err := natskv.Open(wait.Context(t), js, "B", natskv.OwnConnection()); !errors.Is(err, nats.ErrNoServers) {
		t.Errorf("no server: %v", err)
	}
}

// long skips repetitions of a test where one pass is enough.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("one pass only, because of -short")
	}
}

func (v variant) skip(t *testing.T) {
	t.Helper()
	if v.rare {
		long(t)
	}
}

func TestConformanceOnSockets(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			v.skip(t)
			s := StartServer(t, withLimitedUser)
			drivertest.Run(t, func(t testing.TB) drivertest.Harness { return v.harness(t, s) })
		})
	}
}

func TestElectionsOnSockets(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			v.skip(t)
			t.Parallel()
			s := StartServer(t, withLimitedUser)
			electiontest.Run(t, func(t testing.TB) drivertest.Harness { return v.harness(t, s) })
		})
	}
}

// TestCloseLeavesNothing: Close leaves nothing behind on a connection that stays open. The server's
// goroutines do not count.
func TestCloseLeavesNothing(t *testing.T) {
	f := newFixture(t)
	goroutines := func() int {
		all := make([]byte, 4<<20)
		all = all[:runtime.Stack(all, true)]
		return bytes.Count(all, []byte("nats.go")) + bytes.Count(all, []byte("driver/natskv."))
	}
	before := goroutines()
	subs := f.nc.NumSubscriptions()
	for name, s := range f.each() {
		h := watchAll(t, s, testKey)
		h.await(t, versionOf(f.put(testKey, "v")))
		f.must(s.Close())
		f.must(s.Close())
		if _, err := s.Watch(wait.Context(t), testKey, func(driver.Entry) {}); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s: a watch after close: %v", name, err)
		}
		h.stop()
		f.read(s, testKey)
	}
	wait.Until(t, "the goroutines are gone", func() bool { return goroutines() <= before })
	wait.Until(t, "the subscriptions are gone", func() bool { return f.nc.NumSubscriptions() <= subs })
}

// TestRefusedCredentials: a server that comes back with other users is reported as a missing right.
// The connection keeps trying without end, because the next change of the configuration may admit
// it.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var refusals natsnet.Errors
	s := openStore(t, natsnet.JetStream(t, natsnet.Connect(t, f.server.ClientURL(), nats.UserInfo("user", "x"))), f.kv.Bucket(),
		natskv.OwnConnection(refusals.OfServer()))
	with := func(password string) func(*server.Options) {
		return func(o *server.Options) { o.Username, o.Password = "user", password }
	}
	refusing := restart(t, f.server, func() {}, with("other"))
	wait.Until(t, "the refusal is reported", func() bool {
		_, err := s.CompareAndSwap(wait.Context(t), testKey, "", []byte("v"))
		return errors.Is(err, driver.ErrDenied) && errors.Is(err, nats.ErrAuthorization)
	})
	wait.Until(t, "it is tried again and again", func() bool { return len(refusals.All()) >= 4 })
	restart(t, refusing, func() {}, with("x"))
	wait.Until(t, "the store is reached again", func() bool { return readable(s) })
}
