package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/watches"
)

// Option changes the behavior of Open.
type Option func(*settings)

type settings struct {
	prefix   string
	database int
	cluster  bool
	wait     int
}

// channel is where writes are published. Channels are the same in all databases of a server.
func (s settings) channel() string { return fmt.Sprintf("%schanges:%d", s.prefix, s.database) }

// WithPrefix sets the beginning of the names of all keys, and of the channel. Default: tenure:. It
// may be empty.
func WithPrefix(prefix string) Option { return func(s *settings) { s.prefix = prefix } }

// WithCluster says that the addresses are servers of a Cluster.
func WithCluster() Option { return func(s *settings) { s.cluster = true } }

// WithWait makes each write and each read wait until so many replicas have acknowledged it (WAIT).
// Otherwise it returns an error that wraps [ErrReplicas], and the outcome of a write stays open.
//
// With the number of all replicas that may be promoted, a failover loses nothing that a member
// wrote or read, and there are never two leaders, not even while a partition leaves two primaries.
// The price: no leader is elected or renews while a replica is missing. With a smaller number,
// another replica may be promoted than those that acknowledged, so it rules out neither. The
// replicas have the state in memory, not on disk.
//
// Set it in all candidates. It costs one round trip to the replicas for each call. A read also
// writes the version once more, so it needs the right to write: leave the option out in programs
// that only observe.
func WithWait(replicas int) Option { return func(s *settings) { s.wait = replicas } }

const (
	// dialWithin and answerWithin are defaults of the client. A silent connection for pushes is
	// checked after pingAfter.
	dialWithin   = 2 * time.Second
	answerWithin = 4 * time.Second
	pingAfter    = 6 * time.Second
	// maxConnections serve thousands of elections, since a call takes less than a millisecond.
	maxConnections = 16
	bufferSize     = 16 << 10
	idleAfter      = time.Minute
	refreshEvery   = 5 * time.Second
	// maxRedirections allows for a slot that moves while the client's map is old.
	maxRedirections = 3
)

// Open connects to a server, to the primary that Sentinel names (o.Sentinel), or to a Cluster
// ([WithCluster]). It sets what elections need in o: retries are off, each call has a connection of
// its own while it lasts, and the cache is off. Other zero fields get small defaults. The context
// bounds connecting. Close the store when no election uses it.
//
// It returns an error that wraps driver.ErrDenied if the server refuses the credentials, and any
// other error if the options contradict each other or no server answers.
func Open(ctx context.Context, o rueidis.ClientOption, opts ...Option) (*Store, error) {
	set := settings{prefix: "tenure:", database: o.SelectDB}
	for _, opt := range opts {
		opt(&set)
	}
	switch {
	case set.wait < 0:
		return nil, fmt.Errorf("redisstore: WithWait(%d): the number is negative", set.wait)
	case set.cluster && (o.Sentinel.MasterSet != "" || o.SelectDB != 0):
		return nil, errors.New("redisstore: a Cluster has neither Sentinel nor databases other than 0")
	case len(o.InitAddress) == 0:
		return nil, errors.New("redisstore: no address is given")
	case len(o.InitAddress) > 1 && !set.cluster && o.Sentinel.MasterSet == "":
		return nil, errors.New("redisstore: several addresses need WithCluster, or the name of the primary in Sentinel")
	}
	prepare(&o, set)
	s := &Store{set: set}
	client, err := abandon.Run(ctx, &s.calls, func() (rueidis.Client, error) { return rueidis.NewClient(o) }, rueidis.Client.Close)
	if err != nil {
		return nil, fmt.Errorf("redisstore: connect: %w", explain(err))
	}
	s.client = client
	s.hub = watches.NewHub(func(*watches.Hub) watches.Follow { return s.follow })
	if !set.cluster {
		s.seats = make(chan struct{}, o.BlockingPoolSize)
	}
	return s, nil
}

// prepare sets what elections need.
func prepare(o *rueidis.ClientOption, set settings) {
	o.DisableRetry, o.DisableCache, o.DisableAutoPipelining = true, true, true
	o.SendToReplicas, o.ReplicaOnly = nil, false
	o.ForceSingleClient = !set.cluster && o.Sentinel.MasterSet == ""
	o.PipelineMultiplex = -1 // the connection for pushes
	if o.ClientSetInfo == nil {
		o.ClientSetInfo = rueidis.DisableClientSetInfo
	}
	o.ReadBufferEachConn = cmp.Or(o.ReadBufferEachConn, bufferSize)
	o.WriteBufferEachConn = cmp.Or(o.WriteBufferEachConn, bufferSize)
	o.RingScaleEachConn = cmp.Or(o.RingScaleEachConn, 6)
	o.BlockingPoolSize = cmp.Or(o.BlockingPoolSize, maxConnections)
	o.BlockingPoolCleanup = cmp.Or(o.BlockingPoolCleanup, idleAfter)
	o.Dialer.Timeout = cmp.Or(o.Dialer.Timeout, dialWithin)
	o.Dialer.KeepAlive = cmp.Or(o.Dialer.KeepAlive, pingAfter)
	o.ConnWriteTimeout = cmp.Or(o.ConnWriteTimeout, answerWithin)
	// A message of Sentinel that is lost would bind the client to a former primary.
	o.Sentinel.TopologyRefreshInterval = cmp.Or(o.Sentinel.TopologyRefreshInterval, refreshEvery)
	// A server that is silent, rather than gone, may be asked until its calls happen to end before
	// their contexts: only then the client reads the map again.
	o.ClusterOption.ShardsRefreshInterval = cmp.Or(o.ClusterOption.ShardsRefreshInterval, refreshEvery)
	o.ClusterOption.MaxMovedRedirections = cmp.Or(o.ClusterOption.MaxMovedRedirections, maxRedirections)
}

// nodes returns a client for each server that may have keys. In a Cluster these are also replicas.
func (s *Store) nodes() []rueidis.Client {
	if !s.set.cluster {
		return []rueidis.Client{s.client}
	}
	return slices.Collect(maps.Values(s.client.Nodes()))
}
