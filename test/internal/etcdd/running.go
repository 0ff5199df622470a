package etcdd

import (
	"context"
	"net"
	"path"

	"google.golang.org/grpc"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/etcdkv"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// kind is how programs run n members.
func kind(n int) rig.Kind {
	k := rig.Kind{
		Title: "one etcd server over loopback and a relay for each candidate",
		URL:   func(address string) string { return "etcd://" + address + "/elections" },
		Start: func(ctx context.Context, dir string) (rig.Running, error) {
			c, err := Start(ctx, built, n, dir)
			if err != nil {
				return nil, err
			}
			return Running{c}, nil
		},
		Connect: connect,
	}
	if n > 1 {
		k.Title, k.URL = "three etcd servers", nil
	}
	return k
}

// Running is a cluster for programs.
type Running struct{ *Cluster }

// Create does nothing: a prefix needs no creation.
func (Running) Create(context.Context, string) error { return nil }

// Each returns the members one by one.
func (r Running) Each() (all []rig.Server) {
	for _, s := range r.Servers {
		all = append(all, s)
	}
	return all
}

// connect opens a store for each place, over relays.
func connect(c rig.Connector) (rig.Opener, error) {
	config := Config(c.Addresses...)
	config.DialOptions = []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return c.DialContext(ctx, "tcp", address)
		}),
		grpc.WithChainUnaryInterceptor(counter(c.Count)),
	}
	return func(_ context.Context, place string) (driver.Store, error) {
		return etcdkv.Open(config, "/"+place+"/")
	}, nil
}

// counter calls count for each request, with the name of its method. The stream of a watch is no
// request.
func counter(count func(kind string)) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		if count != nil {
			count(path.Base(method))
		}
		return invoke(ctx, method, request, reply, cc, opts...)
	}
}
