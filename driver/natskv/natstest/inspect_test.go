//go:build integration

package natstest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

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
