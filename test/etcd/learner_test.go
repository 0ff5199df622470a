//go:build integration

package etcd

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/etcdd"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// TestLearnerAmongEndpoints: a learner refuses requests and watches, and the store turns to the
// next endpoint. Nothing fails, and nothing is written twice.
func TestLearnerAmongEndpoints(t *testing.T) {
	t.Parallel()
	p := start(t)
	v := p.write(p.store, "first")
	var refused atomic.Int64
	config := etcdd.Config(p.Learner(t), p.Addresses()[0])
	config.DialOptions = []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(
			ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			err := invoke(ctx, method, request, reply, cc, opts...)
			if err != nil && strings.Contains(err.Error(), "not supported for learner") {
				refused.Add(1)
			}
			return err
		}),
	}
	store := etcdd.OpenAt(t, config, p.Prefix)
	// The store calls while a connection is open, and the first one may be to either member.
	wait.Until(t, "the learner refuses a request", func() bool {
		_, err := store.Read(wait.Context(t), key)
		return err == nil && refused.Load() > 0
	})
	for i := range 50 {
		pushes := make(chan driver.Entry, 100)
		stop, err := store.Watch(wait.Context(t), key, func(e driver.Entry) { pushes <- e })
		rig.Must(t, err)
		value := fmt.Sprint("write ", i)
		if v, err = store.CompareAndSwap(wait.Context(t), key, v, []byte(value)); err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		if e, err := store.Read(wait.Context(t), key); err != nil || e.Version != v {
			t.Fatalf("%s: version %s became %s, %v", value, v, e.Version, err)
		}
		for e := range pushes {
			if e.Version == v {
				break
			}
		}
		stop()
	}
}
