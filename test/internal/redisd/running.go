package redisd

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// single is one server, for programs.
var single = rig.Kind{
	Title: "one Redis server (appendonly, appendfsync always) over loopback and a relay for each candidate",
	URL:   func(address string) string { return "redis://" + address },
	Start: func(_ context.Context, dir string) (rig.Running, error) {
		s, err := Run(Redis, dir)
		if err != nil {
			return nil, err
		}
		return Running{s}, nil
	},
	Connect: connect,
}

// Running is one server.
type Running struct{ *Server }

// Addresses returns HOST:PORT.
func (r Running) Addresses() []string { return []string{r.Address()} }

// Create does nothing: a prefix needs no creation.
func (Running) Create(context.Context, string) error { return nil }

// connect opens a store for each prefix.
func connect(c rig.Connector) (rig.Opener, error) {
	return func(ctx context.Context, prefix string) (driver.Store, error) {
		return redisstore.Open(ctx, rueidis.ClientOption{
			InitAddress: c.Addresses[:1], ClientName: c.ID, DialCtxFn: dialer(c.Via),
		}, redisstore.WithPrefix(prefix+":"))
	}, nil
}
