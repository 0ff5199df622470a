package natskv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// elsewhereWithin bounds asking the other servers. One that is down is no finding.
const elsewhereWithin = 2 * time.Second

// sight is what another of the configured servers has under the bucket's name.
type sight struct {
	server  string
	created time.Time // of the stream; zero: it has none
}

// elsewhere asks each of the configured servers but the connected one, over a connection that ends at once. Those that do
// not answer are left out.
func (b *bucket) elsewhere(ctx context.Context) []sight {
	ctx, cancel := context.WithTimeout(ctx, elsewhereWithin)
	defer cancel()
	var all []sight
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, server := range b.otherServers() {
		asked.Go(func() {
			created, err := b.createdAt(ctx, server)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, sight{server: bare(server), created: created})
		})
	}
	asked.Wait()
	slices.SortFunc(all, func(a, b sight) int { return strings.Compare(a.server, b.server) })
	return all
}

// otherServers are the URLs that the program gave, without those that servers told of each other.
func (b *bucket) otherServers() []string {
	o := b.nc.Opts
	if o.InProcessServer != nil {
		return nil
	}
	given := slices.Clone(o.Servers)
	if o.Url != "" {
		given = append(given, o.Url)
	}
	here := bare(b.nc.ConnectedUrl())
	return slices.DeleteFunc(given, func(server string) bool { return bare(server) == here })
}

// bare is a server's address without credentials.
func bare(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return server
	}
	return u.Host
}

// createdAt returns when the stream was made that a server knows under our name, zero if none.
func (b *bucket) createdAt(ctx context.Context, server string) (time.Time, error) {
	o, err := opening{connection: []nats.Option{
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default one prints
		nats.NoReconnect(),
		nats.IgnoreDiscoveredServers(),
		nats.Timeout(elsewhereWithin),
	}}.settings(b.nc.Opts)
	if err != nil {
		return time.Time{}, err
	}
	o.Url, o.Servers = server, nil
	nc, err := o.Connect()
	if err != nil {
		return time.Time{}, err
	}
	defer nc.Close()
	there := &bucket{nc: nc, name: b.name, stream: b.stream, api: b.api, stored: b.stored, sendTo: b.sendTo}
	info, err := there.info(ctx)
	if hasCode(err, jetstream.JSErrCodeStreamNotFound) || errors.Is(err, nats.ErrNoResponders) {
		return time.Time{}, nil
	}
	return info.Created, err
}

func atServers(s survey, _ time.Duration) []driver.Finding {
	var found []driver.Finding
	for _, o := range s.others {
		switch {
		case o.created.IsZero():
			found = append(found, one(driver.Unsafe, "servers", fmt.Sprintf("%s, one of the servers given, has no bucket %s, so it "+
				"belongs to another cluster: who connects to it does not take part, or makes a bucket there and elects a second "+
				"leader", o.server, s.bucket), oneCluster)...)
		case !o.created.Equal(s.info.Created):
			found = append(found, one(driver.Unsafe, "servers", fmt.Sprintf("%s, one of the servers given, has another bucket %s, "+
				"made on %s, so it belongs to another cluster: each of them elects a leader", o.server, s.bucket, stamp(o.created)),
				oneCluster)...)
		}
	}
	return found
}

const oneCluster = "give the servers of one cluster only, to all candidates the same"
