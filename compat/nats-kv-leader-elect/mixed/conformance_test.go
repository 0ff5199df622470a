package mixed

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/internal/inprocess"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/electiontest"
)

// quoting writes text that is not JSON as a JSON text. To this store, bare text is an old leader.
type quoting struct{ *natskv.Store }

func (q quoting) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := q.Store.Read(ctx, key)
	var text string
	if err == nil && json.Unmarshal(e.Value, &text) == nil {
		e.Value = []byte(text)
	}
	return e, err
}

func (q quoting) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if !json.Valid(value) {
		value, _ = json.Marshal(string(value))
	}
	return q.Store.CompareAndSwap(ctx, key, prev, value)
}

// TestElectionsWhileMigrating: to Tenure candidates the store is like any other.
func TestElectionsWhileMigrating(t *testing.T) {
	inprocess.Prepare(t)
	electiontest.RunInBubbles(t, func(t testing.TB) drivertest.Harness {
		inprocess.Prepare(t)
		s := inprocess.Start(t, &server.Options{})
		operator := newJetStream(t, inprocess.Connect(t, s))
		// The kit uses leases of two seconds. Three of them must fit in the TTL.
		kv, err := operator.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
			Bucket: "B", TTL: 6 * time.Second, Storage: jetstream.MemoryStorage,
		})
		if err != nil {
			t.Fatal(err)
		}
		open := func() driver.Store {
			store, err := natskv.Open(t.Context(), newJetStream(t, inprocess.Connect(t, s)), "B", Migrating())
			if err != nil {
				t.Fatal(err)
			}
			return quoting{closedAfter(t, store)}
		}
		return drivertest.Harness{
			Store: open(), Peer: open(),
			Delete: func(ctx context.Context, key string) error { return kv.Delete(ctx, key) },
			Purge:  func(ctx context.Context, key string) error { return purge(ctx, operator, key) },
		}
	})
}
