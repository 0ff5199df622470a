package natsd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// Members is the number of servers of a cluster.
const Members = 3

// Cluster is three servers that replicate streams. Its methods may be called concurrently, except
// those that change the same server.
type Cluster struct {
	// Servers have the names n1 to n3.
	Servers [Members]*Server
	// routes are the relays from one server to another; nil if the routes are direct.
	routes [Members][Members]*relay.Relay
}

// StartCluster starts a cluster with its files under a directory. When it returns, the servers have
// started but may not have found each other. Ready waits for that.
func StartCluster(dir string) (*Cluster, error) { return startCluster(dir, false, ports.Free) }

// StartPartible is StartCluster for a cluster whose servers Part can cut off. The traffic between
// the servers passes through this process, so it is slower.
func StartPartible(dir string) (*Cluster, error) { return startCluster(dir, true, ports.Free) }

func startCluster(dir string, partible bool, free func(int) ([]int, error)) (c *Cluster, err error) {
	err = onFree(free, 2*Members, func(found []int) error {
		c = &Cluster{}
		if err := c.start(dir, partible, found[:Members], found[Members:]); err != nil {
			c.Kill()
			return err
		}
		return nil
	})
	return c, err
}

func (c *Cluster) start(dir string, partible bool, forClients, forRoutes []int) error {
	for i := range c.Servers {
		var routes []string
		for j, port := range forRoutes {
			if i == j {
				continue
			}
			url := "nats://" + ports.Address(port)
			if partible {
				r, err := relay.New(url)
				if err != nil {
					return err
				}
				c.routes[i][j], url = r, r.URL()
			}
			routes = append(routes, url)
		}
		name := fmt.Sprintf("n%d", i+1)
		c.Servers[i] = &Server{place: place{
			Dir: filepath.Join(dir, name), Port: forClients[i], Name: name, Inner: forRoutes[i], Routes: routes, Hidden: partible,
		}}
		if err := c.Servers[i].Start(); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends all servers, also paused ones.
func (c *Cluster) Kill() {
	for _, s := range c.Servers {
		if s != nil {
			s.Kill()
			c.each(s, (*relay.Relay).Close)
		}
	}
}

// URLs returns the addresses for clients.
func (c *Cluster) URLs() []string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.URL())
	}
	return all
}

// Others returns all servers except one.
func (c *Cluster) Others(than *Server) []*Server {
	var all []*Server
	for _, s := range c.Servers {
		if s != than {
			all = append(all, s)
		}
	}
	return all
}

// Part cuts a server off from the two others. Neither side notices at once: the connections stay
// open and silent. Clients still reach all three. Heal ends it. The cluster must be from
// StartPartible.
func (c *Cluster) Part(s *Server) { c.each(s, (*relay.Relay).Blackhole) }

// Heal undoes Part. Swallowed bytes are lost, and the connections with them.
func (c *Cluster) Heal(s *Server) { c.each(s, (*relay.Relay).Heal) }

// each calls do for the relays of a server in both directions, if there are any.
func (c *Cluster) each(s *Server, do func(*relay.Relay)) {
	for i, from := range c.routes {
		for j, r := range from {
			if r != nil && (c.Servers[i] == s || c.Servers[j] == s) {
				do(r)
			}
		}
	}
}

// shared is the cluster of this process's tests.
var shared struct {
	once sync.Once
	dir  string
	c    *Cluster
	err  error
}

// Shared returns one cluster from StartPartible for all tests of a package, whose TestMain calls
// End. The end of each test waits until its faults are repaired, so these tests must not be
// parallel.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	if !machine.Supported {
		t.Fatal("servers cannot be paused on this system: run the test on Linux")
	}
	shared.once.Do(func() { shared.c, shared.err = begin() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		ctx, cancel := wait.Background()
		defer cancel()
		if err := shared.c.Mend(ctx); err != nil {
			t.Error(err)
			// Later tests fail at once instead of waiting again.
			shared.err = fmt.Errorf("the servers are not whole since %s: %w", t.Name(), err)
		}
	})
	return shared.c
}

func begin() (*Cluster, error) {
	var err error
	if shared.dir, err = os.MkdirTemp("", "natsd-"); err != nil {
		return nil, err
	}
	c, err := StartPartible(shared.dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := wait.Background()
	defer cancel()
	return c, c.Ready(ctx)
}

// Tests runs the tests of a package and then ends the cluster of Shared.
func Tests(m *testing.M) {
	Main()
	code := m.Run()
	End()
	os.Exit(code)
}

// End ends the cluster of Shared.
func End() {
	if shared.c != nil {
		shared.c.Kill()
	}
	_ = os.RemoveAll(shared.dir)
}

// Mend undoes the faults of servers and routes, and waits until the cluster is ready again.
func (c *Cluster) Mend(ctx context.Context) error {
	var errs []error
	for _, s := range c.Servers {
		c.Heal(s)
		if s.process.Runs() {
			errs = append(errs, s.Resume())
		} else {
			errs = append(errs, s.Start())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.Ready(ctx)
}
