package natskv

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// atServer returns what an inspection says of the servers given.
func atServer(t *testing.T, s *Store) []driver.Finding {
	t.Helper()
	found, err := s.Inspect(testContext(t), testLease)
	if err != nil {
		t.Fatal(err)
	}
	var about []driver.Finding
	for _, f := range found {
		if f.Setting == "servers" {
			about = append(about, f)
		}
	}
	return about
}

// TestInspectFindsTwoClusters: at the start nobody knows yet which bucket is the right one, and each candidate may come to
// another one.
func TestInspectFindsTwoClusters(t *testing.T) {
	t.Parallel()
	s, _, second := twoClusters(t)
	found := atServer(t, s)
	host := strings.TrimPrefix(second.server.ClientURL(), "nats://")
	if len(found) != 1 || found[0].Severity != driver.Unsafe || !strings.Contains(found[0].Problem, host+", one of the servers given, has another bucket ELECTIONS") {
		t.Errorf("found %v", found)
	}
	second.must(second.js.DeleteKeyValue(testContext(t), "ELECTIONS"))
	if found := atServer(t, s); len(found) != 1 || !strings.Contains(found[0].Problem, "has no bucket ELECTIONS") {
		t.Errorf("without the bucket there: %v", found)
	}
	eventually(t, "the second cluster has no connections but the test's", func() bool { return second.server.NumClients() == 1 })
}

// TestInspectAsksWithoutJetStream: a server that has none is of no cluster that has some.
func TestInspectAsksWithoutJetStream(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := startServer(t, withoutJetStream)
	nc := connect(t, f.server.ClientURL()+","+other.ClientURL(), nats.DontRandomize())
	s := openStore(t, newJetStream(t, nc), f.kv.Bucket())
	if found := atServer(t, s); len(found) != 1 || !strings.Contains(found[0].Problem, "has no bucket") {
		t.Errorf("found %v", found)
	}
}

// TestInspectInCluster looks at what a cluster offers and a bucket does not use, and takes several ways to one bucket, one of
// them closed, for what they should be.
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
		"three replicas": {[]func(*jetstream.KeyValueConfig){inThree}, nil},
		"one replica": {nil, []string{
			"warning: replicas: the loss of one server stops all elections, though there is a cluster (nats kv edit"}},
		"one replica in memory": {[]func(*jetstream.KeyValueConfig){inMemory}, []string{
			"warning: replicas", "unsafe: storage: a restart of the server forgets all records and terms"}},
		"three replicas in memory": {[]func(*jetstream.KeyValueConfig){inMemory, inThree}, []string{
			"warning: storage: a restart of all servers forgets"}},
	} {
		t.Run(name, func(t *testing.T) {
			kv := addBucket(t, js, c.bucket...)
			s := openStore(t, newJetStream(t, connect(t, urls)), kv.Bucket(), OwnConnection())
			found, err := s.Inspect(testContext(t), testLease)
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

// startCluster runs three servers in this process.
func startCluster(t *testing.T) []*server.Server {
	t.Helper()
	var routes []string
	for range 3 {
		routes = append(routes, fmt.Sprint("nats://127.0.0.1:", freePort(t)))
	}
	var all []*server.Server
	for _, route := range server.RoutesFromStr(strings.Join(routes, ",")) {
		port, _ := strconv.Atoi(route.Port())
		all = append(all, startServer(t, func(o *server.Options) {
			o.ServerName, o.Routes = "n"+route.Port(), server.RoutesFromStr(strings.Join(routes, ","))
			o.Cluster = server.ClusterOpts{Name: "C", Host: "127.0.0.1", Port: port, NoAdvertise: true}
		}))
	}
	eventually(t, "the cluster has a leader that knows all", func() bool {
		return slices.ContainsFunc(all, func(s *server.Server) bool {
			return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(all)
		})
	})
	return all
}
