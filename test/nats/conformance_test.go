//go:build integration

package nats

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// TestConformance runs what package natskv runs against one server. It uses the two servers that
// are left when the leader of the bucket's stream is down, and all three after a restart. It runs
// alone, because it counts goroutines.
func TestConformance(t *testing.T) {
	for _, f := range natsd.Falls() {
		t.Run("leader "+f.Name, func(t *testing.T) {
			soak(t)
			a := newArena(t)
			fallen := a.leader()
			a.must(f.Fall(a.Cluster, fallen))
			a.conform(t, a.Others(fallen))
		})
	}
	t.Run("rolling restart", func(t *testing.T) {
		soak(t)
		a := newArena(t)
		a.roll()
		a.conform(t, a.Servers[:])
	})
}

// conform runs the kit over working servers. All its cases share the bucket.
func (a *arena) conform(t *testing.T, working []*natsd.Server) {
	first, last := working[0], working[len(working)-1]
	operator := a.dial(last.URL())
	peer := a.openOver(operator)
	a.eventually("a write", func(ctx context.Context) error {
		e, err := peer.Read(ctx, "probe")
		if err != nil {
			return err
		}
		_, err = peer.CompareAndSwap(ctx, "probe", e.Version, []byte("x"))
		return err
	})
	// The cluster may find its new leader seconds after the stream has.
	a.must(a.Governed(a.context(), working))
	a.eventually("a look at what is absent", func(ctx context.Context) error {
		_, err := peer.Read(ctx, "absent")
		return err
	})
	r, err := relay.New(first.URL())
	a.must(err)
	a.tb.Cleanup(r.Close)
	store := a.openOver(a.dial(r.URL()))
	denied := a.openOver(a.dial(first.URL(), nats.UserInfo(natsd.Nobody, natsd.Nobody)))
	kv, err := operator.KeyValue(a.context(), a.bucket)
	a.must(err)
	drivertest.Run(t, func(testing.TB) drivertest.Harness {
		return drivertest.Harness{
			Store:  store,
			Peer:   peer,
			Denied: denied,
			Delete: func(ctx context.Context, key string) error { return kv.Delete(ctx, key) },
			Purge:  func(ctx context.Context, key string) error { return a.purge(ctx, operator, key) },
			Cut: func() func() {
				r.Blackhole()
				return r.Heal
			},
		}
	})
}

// purge removes the messages of a key and leaves no marker.
func (a *arena) purge(ctx context.Context, js jetstream.JetStream, key string) error {
	stream, err := js.Stream(ctx, a.stream())
	if err != nil {
		return err
	}
	return stream.Purge(ctx, jetstream.WithPurgeSubject("$KV."+a.bucket+"."+key))
}
