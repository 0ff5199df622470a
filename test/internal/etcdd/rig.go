package etcdd

import (
	"context"
	"crypto/rand"
	"io"
	randv2 "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/etcdkv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// built finds the server that Install builds.
func built(ctx context.Context) (string, error) { return program(ctx, "etcd") }

// Rigs returns one server, a cluster of three, one server of Debian's old release, and a cluster of
// three whose members are cut off from each other.
func Rigs() []rig.Rig {
	on := func(name string, n int, find func(context.Context) (string, error)) rig.Rig {
		return rig.Rig{Name: name, Start: func(t testing.TB, _ bool) rig.Site {
			return NewSite(t, n, find)
		}}
	}
	parted := rig.Rig{Name: "etcd3-parted", Soak: true, Start: func(t testing.TB, _ bool) rig.Site {
		c, err := startPartible(wait.Context(t), built, t.TempDir())
		return partedSite{newSite(t, c, err)}
	}}
	all := []rig.Rig{on("etcd", 1, built), on("etcd3", 3, built), on("etcd-debian", 1, debian), parted}
	all[0].Kind, all[1].Kind = kind(1), kind(3)
	all[1].SameClients, all[2].SameClients, all[3].SameClients = true, true, true
	all[1].SoakElections, all[2].SoakElections, all[2].SoakFaults = true, true, true
	all[1].Attention, all[3].Attention = 500*time.Millisecond, 500*time.Millisecond
	return all
}

// Site is a prefix of the keys of a cluster.
type Site struct {
	*Cluster
	Prefix   string
	restores bool
	down     *Server // new clients avoid it
}

// NewSite starts a cluster of n members for the length of a test.
func NewSite(t testing.TB, n int, find func(context.Context) (string, error)) *Site {
	t.Helper()
	c, err := Start(wait.Context(t), find, n, t.TempDir())
	return newSite(t, c, err)
}

func newSite(t testing.TB, c *Cluster, err error) *Site {
	t.Helper()
	rig.Must(t, err)
	t.Cleanup(c.End)
	return &Site{Cluster: c, Prefix: "/" + rand.Text()[:12] + "/", restores: len(c.Servers) == 1 && !isDebian(c)}
}

// One is NewSite for one member of the present release.
func One(t testing.TB) *Site { return NewSite(t, 1, built) }

// Direct opens a store over no relay.
func (s *Site) Direct(t testing.TB) driver.Store {
	t.Helper()
	return OpenAt(t, Config(s.Addresses()...), s.Prefix)
}

// isDebian reports whether the server is too old for the snapshots of etcdutl.
func isDebian(c *Cluster) bool {
	path, err := debian(context.Background())
	return err == nil && c.Servers[0].Command[0] == path
}

// Config returns the configuration of clients of these endpoints.
func Config(endpoints ...string) clientv3.Config {
	return clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()}
}

// Operator returns a client with all rights.
func Operator(t testing.TB, c *Cluster) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(Config(c.Addresses()...))
	rig.Must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Open gives the client the members in another order for each candidate. It reaches them through
// relays of its own.
func (s *Site) Open(t testing.TB, n int) (driver.Store, rig.Way) {
	t.Helper()
	var servers []*Server
	for i := range s.Servers {
		if one := s.Servers[(n+i)%len(s.Servers)]; one != s.down {
			servers = append(servers, one)
		}
	}
	return s.openAt(t, servers...)
}

// openAt opens a store over relays to some of the members.
func (s *Site) openAt(t testing.TB, servers ...*Server) (driver.Store, rig.Way) {
	t.Helper()
	way := relay.Set{}
	var via []string
	for _, one := range servers {
		r := rig.Relay(t, one.URL())
		way[one.URL()], via = r, append(via, r.Address())
	}
	return OpenAt(t, Config(via...), s.Prefix), way
}

// OpenAt opens a store for the length of a test.
func OpenAt(t testing.TB, c clientv3.Config, prefix string) *etcdkv.Store {
	t.Helper()
	store, err := etcdkv.Open(c, prefix)
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, store.Close()) })
	return store
}

// Kit removes keys. A deletion leaves nothing that a purge could remove. A cluster answers by then,
// also if it just lost a member.
func (s *Site) Kit(t testing.TB) drivertest.Harness {
	for _, one := range s.Servers {
		if one != s.down {
			rig.Must(t, one.Await(wait.Context(t), one.Answers))
		}
	}
	operator := Operator(t, s.Cluster)
	remove := func(ctx context.Context, key string) error {
		_, err := operator.Delete(ctx, s.Prefix+key)
		return err
	}
	return drivertest.Harness{
		Delete: remove, Purge: remove,
		Recreate: func(ctx context.Context) error {
			_, err := operator.Delete(ctx, s.Prefix, clientv3.WithPrefix())
			return err
		},
	}
}

// Restores is for one server: a cluster is restored in the same way.
func (s *Site) Restores() bool { return s.restores }

// Backup takes a snapshot. It is restored as docs/etcd.md says.
func (s *Site) Backup(t testing.TB) (restore func()) {
	snapshot := Snapshot(t, s.Cluster)
	return func() {
		rig.Must(t, s.Restore(wait.Context(t), snapshot, rand.Text(), "--bump-revision", "1000000000", "--mark-compacted"))
	}
}

// Snapshot saves a snapshot of a cluster, and returns its file.
func Snapshot(t testing.TB, c *Cluster) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot")
	wait.Succeeds(t, "a snapshot", func(ctx context.Context) error {
		from, err := Operator(t, c).Snapshot(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = from.Close() }()
		to, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer func() { _ = to.Close() }()
		_, err = io.Copy(to, from)
		return err
	})
	return path
}

// Faults are those of one server. In a cluster they hit its leader, or a follower.
func (s *Site) Faults() []rig.Fault {
	if len(s.Servers) == 1 {
		return rig.Of(func(*randv2.Rand) rig.Server { return s.Cluster }, 3)
	}
	var all []rig.Fault
	for _, whom := range []string{"leader", "follower"} {
		for _, f := range rig.Of(nil, 3) {
			all = append(all, s.inCluster(whom, f))
		}
	}
	return append(all, rig.Fault{
		Name: "rolling restart", Why: "each server hands over what it leads", Least: 10 * time.Second, Serves: true,
		Fall: func(t testing.TB, _ *randv2.Rand) func() {
			for _, one := range s.Servers {
				rig.Must(t, one.Stop())
				rig.Must(t, one.Start())
				rig.Must(t, s.Whole())
			}
			return func() {}
		},
	})
}

// inCluster is a fault of one member of a cluster, which goes on without it.
func (s *Site) inCluster(whom string, of rig.Fault) rig.Fault {
	falls := map[string][2]func(*Server) error{
		"killed": {(*Server).Kill, (*Server).Start}, "stopped": {(*Server).Stop, (*Server).Start},
		"paused": {(*Server).Pause, (*Server).Resume},
	}[of.Name]
	return rig.Fault{
		Name: whom + " " + of.Name, Why: "what was acknowledged is on one more server, and what was not may come to light later",
		Before: time.Second, Lasts: 5 * time.Second, Least: 10 * time.Second, Serves: true,
		Quick: whom == "leader" && of.Name == "killed",
		Fall: func(t testing.TB, _ *randv2.Rand) func() {
			one := s.leader(t)
			if whom == "follower" {
				one = s.others(one)[0]
			}
			rig.Must(t, falls[0](one))
			s.down = one
			return func() {
				rig.Must(t, falls[1](one))
				rig.Must(t, s.Whole())
				s.down = nil
			}
		},
	}
}

// leader returns the member that leads the cluster.
func (s *Site) leader(t testing.TB) (leader *Server) {
	t.Helper()
	operator := Operator(t, s.Cluster)
	wait.Succeeds(t, "a leader of the cluster", func(ctx context.Context) error {
		for _, one := range s.Servers {
			status, err := operator.Status(ctx, one.Address())
			if err != nil {
				return err
			}
			if status.Leader == status.Header.MemberId {
				leader = one
				return nil
			}
		}
		return rig.ErrNoServer
	})
	return leader
}

// others returns all members but one.
func (s *Site) others(than *Server) []*Server {
	return slices.DeleteFunc(slices.Clone(s.Servers), func(one *Server) bool { return one == than })
}
