//go:build integration

package chaos

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

// TestConformance runs the tests of package natskv against servers in other processes, while that
// package has a server in its own process. It runs alone, because it counts goroutines.
func TestConformance(t *testing.T) {
	t.Run("one server", func(t *testing.T) { conform(t, []*natsd.Server{startServer(t)}) })
	t.Run("three replicas", func(t *testing.T) {
		conform(t, startCluster(t))
	})
}

func conform(t *testing.T, servers []*natsd.Server) {
	first, last := servers[0], servers[len(servers)-1]
	nobody := connect(t, first.URL(), nats.UserInfo(natsd.Nobody, natsd.Nobody))
	drivertest.Run(t, func(t testing.TB) drivertest.Harness {
		operator := connect(t, last.URL())
		kv := addBucket(t, operator, replicated(len(servers)))
		r := startRelay(t, first)
		return drivertest.Harness{
			Store:  patient{openStore(t, connect(t, r.URL()), kv.Bucket())},
			Peer:   patient{openStore(t, operator, kv.Bucket())},
			Denied: openStore(t, nobody, kv.Bucket()),
			Delete: func(ctx context.Context, key string) error { return kv.Delete(ctx, key) },
			Purge:  func(ctx context.Context, key string) error { return purge(ctx, operator, kv.Bucket(), key) },
			Cut: func() func() {
				r.Blackhole()
				return r.Heal
			},
		}
	})
}

// patient tries again when replicas refuse because a write is in flight, as they may for a moment
// after it was acknowledged. Elections read then. The kit would take it for a lost version.
type patient struct{ *natskv.Store }

func (p patient) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	for {
		v, err := p.Store.CompareAndSwap(ctx, key, prev, value)
		var api *jetstream.APIError
		if !errors.As(err, &api) || api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequenceConstant {
			return v, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func replicated(n int) func(*jetstream.KeyValueConfig) {
	return func(c *jetstream.KeyValueConfig) { c.Replicas = n }
}

// purge removes the messages of a key and leaves no marker.
func purge(ctx context.Context, js jetstream.JetStream, bucket, key string) error {
	stream, err := js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return err
	}
	return stream.Purge(ctx, jetstream.WithPurgeSubject("$KV."+bucket+"."+key))
}
