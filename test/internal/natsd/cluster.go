package natsd

import (
	"fmt"
	"path/filepath"

	"github.com/tenure-go/tenure/test/internal/ports"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// Members is how many servers a cluster has.
const Members = 3

// Cluster is three servers which keep streams together. Its methods may be called from many
// goroutines, but those that change the same server one after another.
type Cluster struct {
	// Servers have the names n1 to n3.
	Servers [Members]*Server
	routes  routes
}

// StartCluster runs a cluster with files under a directory. The servers have started when it
// returns, but may not have found each other, which Ready waits for.
func StartCluster(dir string) (*Cluster, error) { return startCluster(dir, false, ports.Free) }

// StartPartible is StartCluster for a cluster that Part can part. The traffic between its servers
// passes through this process, which takes time.
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

// URLs are where clients connect.
func (c *Cluster) URLs() []string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.URL())
	}
	return all
}

// Others are all servers but one.
func (c *Cluster) Others(than *Server) []*Server {
	var all []*Server
	for _, s := range c.Servers {
		if s != than {
			all = append(all, s)
		}
	}
	return all
}

// Part cuts a server off from the two others, so that neither side notices: connections stay open
// and are silent. Clients still reach all three. Heal ends it. The cluster must have been started
// by StartPartible.
func (c *Cluster) Part(s *Server) { c.each(s, (*relay.Relay).Blackhole) }

// Heal undoes Part. Swallowed bytes are lost, and the connections with them.
func (c *Cluster) Heal(s *Server) { c.each(s, (*relay.Relay).Heal) }

// each does something with all routes of a server.
func (c *Cluster) each(s *Server, do func(*relay.Relay)) {
	for i, other := range c.Servers {
		if other == s {
			c.routes.each(i, do)
		}
	}
}
