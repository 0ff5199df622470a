package natstest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestHandleRefusesMarker: the client's own Create would overwrite the marker, although the caller
// has not seen it.
func TestHandleRefusesMarker(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, s := range map[string]driver.Store{
		"handle":        handled(t, f.nc, f.kv.Bucket()),
		"legacy handle": handledLegacy(t, f.nc, f.kv.Bucket()),
	} {
		f.put(testKey, "v")
		f.must(f.kv.Delete(wait.Context(t), testKey))
		if _, err := s.CompareAndSwap(wait.Context(t), testKey, "", []byte("v")); !errors.Is(err, driver.ErrConflict) {
			t.Errorf("%s: a swap from absence over a delete marker: %v; want a conflict", name, err)
		}
		e := f.read(s, testKey)
		if _, err := s.CompareAndSwap(wait.Context(t), testKey, e.Version, []byte("v")); err != nil {
			t.Errorf("%s: a swap from the delete marker: %v", name, err)
		}
	}
}

// wrapped and wrappedLegacy hide the methods of the library's handles that are not in the
// interface.
type wrapped struct{ jetstream.KeyValue }

func (w wrapped) Status(context.Context) (jetstream.KeyValueStatus, error) { return nil, nil }

type wrappedLegacy struct{ nats.KeyValue }

func (w wrappedLegacy) Status() (nats.KeyValueStatus, error) { return nil, nil }

func TestWrappedHandle(t *testing.T) {
	f := newFixture(t)
	f.put("other", "v")
	js, err := f.nc.JetStream()
	f.must(err)
	legacy, err := js.KeyValue(f.kv.Bucket())
	f.must(err)
	for name, s := range map[string]*natskv.Store{
		"handle":        natskv.FromKeyValue(wrapped{f.kv}),
		"legacy handle": natskv.FromLegacyKeyValue(wrappedLegacy{legacy}),
	} {
		if e := f.read(s, testKey); e.Floor != 0 || !e.Absent() {
			t.Errorf("%s: an absent key reads %+v; want no floor", name, e)
		}
		if _, err := s.Inspect(wait.Context(t), time.Second); !hidesStream(err) {
			t.Errorf("%s: inspect: %v; want a finding that the settings are hidden", name, err)
		}
	}
}
