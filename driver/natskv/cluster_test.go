//go:build integration

package natskv

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv/internal/natstest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestInspectInCluster checks for abilities of a cluster that a bucket does not use. It also checks
// the findings about several servers for one bucket, one of them closed.
func TestInspectInCluster(t *testing.T) {
	long(t)
	t.Parallel()
	servers := startCluster(t)
	js := newJetStream(t, connect(t, servers[0].ClientURL()))
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
			s := openStore(t, newJetStream(t, connect(t, urls)), kv.Bucket(), OwnConnection())
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
	nc := connect(t, startCluster(t)[0].ClientURL())
	f := &fixture{TB: t, nc: nc, js: newJetStream(t, nc)}
	f.kv = created(t, f.js, "ELECTIONS", Replicas(3))
	s := openStore(t, f.js, "ELECTIONS", Pristine())
	e := f.read(s, testKey)
	if !e.Pristine || e.Floor < absolute {
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
		routes = append(routes, fmt.Sprint("nats://127.0.0.1:", natstest.FreePort(t)))
	}
	var all []*server.Server
	for _, route := range server.RoutesFromStr(strings.Join(routes, ",")) {
		port, _ := strconv.Atoi(route.Port())
		all = append(all, startServer(t, func(o *server.Options) {
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
