package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

const (
	// A connection that is silent is given up after these two. Servers close a connection whose
	// client asks more often than every 5 s, and the library asks at most every 10 s.
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 3 * time.Second
	// The pause between attempts to connect grows from the first to the last.
	firstRedial = 50 * time.Millisecond
	lastRedial  = 2 * time.Second
	// dialTimeout bounds an attempt to connect and, with a password, the login of Open.
	dialTimeout = 5 * time.Second
)

// Open returns the elections below a prefix of etcd's keys, such as "/elections/", over connections
// of its own. A slash at the end of the prefix is added if it is missing. The endpoints must all be
// of one cluster.
//
// The store sets MaxUnaryRetries to 1, since a write must not be repeated, and dials with short
// pauses. Where the configuration has no value, it sets DialTimeout to 5 s, DialKeepAliveTime to 10
// s, DialKeepAliveTimeout to 3 s, and a Logger that logs nothing. With a user name, the client
// library logs in before Open returns.
//
// It returns an error if the prefix or the configuration is not valid, or the login fails: then the
// error wraps driver.ErrDenied if the cluster refused it.
func Open(config clientv3.Config, prefix string) (*Store, error) {
	if !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	if err := driver.CheckText(prefix, maxKey); err != nil {
		return nil, fmt.Errorf("etcdkv: the prefix as a %w", err)
	}
	if len(config.Endpoints) == 0 {
		return nil, errors.New("etcdkv: the configuration has no endpoint")
	}
	client, err := clientv3.New(complete(config))
	if err != nil {
		return nil, fmt.Errorf("etcdkv: open: %w", explain(context.Background(), err))
	}
	s := &Store{client: client, kv: pb.NewKVClient(client.ActiveConnection()), tls: config.TLS, prefix: prefix}
	s.hub = watches.NewHub(func(h *watches.Hub) watches.Follow { return (&feed{hub: h, store: s}).follow })
	return s, nil
}

// complete returns the configuration with the settings that elections need.
func complete(c clientv3.Config) clientv3.Config {
	c.MaxUnaryRetries = 1
	if c.DialTimeout == 0 {
		c.DialTimeout = dialTimeout
	}
	if c.DialKeepAliveTime == 0 {
		c.DialKeepAliveTime = keepAliveTime
	}
	if c.DialKeepAliveTimeout == 0 {
		c.DialKeepAliveTimeout = keepAliveTimeout
	}
	if c.Logger == nil && c.LogConfig == nil {
		c.Logger = zap.NewNop()
	}
	pauses := backoff.Config{BaseDelay: firstRedial, Multiplier: 1.6, Jitter: 0.2, MaxDelay: lastRedial}
	c.DialOptions = append([]grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: c.DialTimeout}),
		// A list of keys can be long.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	}, c.DialOptions...)
	return c
}
