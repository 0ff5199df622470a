package identity

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
)

// probeWithin bounds the requests to the other servers. One that is down is not a finding.
const probeWithin = 2 * time.Second

// Sighting is the stream that another of the configured servers has under the same name.
type Sighting struct {
	Server  string
	Created time.Time // zero: it has none
}

// CreatedAt returns when a server's stream was created, zero if it has none.
type CreatedAt func(ctx context.Context, there *connection.Conn) (time.Time, error)

// ProbeCluster asks each of the configured servers except the connected one, over a connection that
// ends at once, when its stream was created. It leaves out those that do not answer.
func ProbeCluster(ctx context.Context, c *connection.Conn, created CreatedAt) []Sighting {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	var all []Sighting
	var mu sync.Mutex
	var probes sync.WaitGroup
	for _, server := range otherServers(c) {
		probes.Go(func() {
			there, err := c.To(server, probeWithin)
			if err != nil {
				return
			}
			defer there.Close()
			at, err := created(ctx, there)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, Sighting{Server: bare(server), Created: at})
		})
	}
	probes.Wait()
	slices.SortFunc(all, func(a, b Sighting) int { return strings.Compare(a.Server, b.Server) })
	return all
}

// otherServers returns the URLs that the program gave, without those that servers reported about
// each other.
func otherServers(c *connection.Conn) []string {
	o := c.NATS().Opts
	if o.InProcessServer != nil {
		return nil
	}
	given := slices.Clone(o.Servers)
	if o.Url != "" {
		given = append(given, o.Url)
	}
	here := bare(c.NATS().ConnectedUrl())
	return slices.DeleteFunc(given, func(server string) bool { return bare(server) == here })
}

// bare returns a server's address without credentials.
func bare(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return server
	}
	return u.Host
}
