package natsd

import (
	"fmt"
	"path/filepath"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// Members is the number of servers of a cluster.
const Members = 3

// Cluster is three servers that replicate streams. Its methods may be called concurrently, except
// those that change the same server.
type Cluster struct {
	// Servers have the names n1 to n3.
	Servers [Members]*Server
	routes  routes
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

func (c *Cluster) start(dir string, partible bool, forClients, forRoutes []int) (err error) {
	if c.routes, err = layRoutes(forRoutes, partible); err != nil {
		return err
	}
	for i := range c.Servers {
		name := fmt.Sprintf("n%d", i+1)
		c.Servers[i] = &Server{place: place{
			Dir: filepath.Join(dir, name), Port: forClients[i], Name: name, Inner: forRoutes[i], Routes: c.routes.of(i), Hidden: partible,
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
		}
	}
	c.routes.close()
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

// each calls do for all routes of a server.
func (c *Cluster) each(s *Server, do func(*relay.Relay)) {
	for i, other := range c.Servers {
		if other == s {
			c.routes.each(i, do)
		}
	}
}
