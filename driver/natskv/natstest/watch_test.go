package natstest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// pushes records the entries that one watch got.
type pushes struct {
	stop func()
	mu   sync.Mutex
	all  []driver.Entry
}

func watchAll(t testing.TB, s *natskv.Store, key string) *pushes {
	t.Helper()
	h := &pushes{}
	stop, err := s.Watch(wait.Context(t), key, func(e driver.Entry) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, e)
	})
	must(t, err)
	h.stop = stop
	t.Cleanup(stop)
	return h
}

func (h *pushes) entries() []driver.Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// await returns the entry with this version once it has come.
func (h *pushes) await(t testing.TB, v driver.Version) driver.Entry {
	t.Helper()
	var e driver.Entry
	wait.Until(t, fmt.Sprintf("version %s is pushed", v), func() bool {
		all := h.entries()
		i := slices.IndexFunc(all, func(e driver.Entry) bool { return e.Version == v })
		if i >= 0 {
			e = all[i]
		}
		return i >= 0
	})
	return e
}

// each returns a store for each way to open the fixture's bucket.
func (f *fixture) each(opts ...natskv.Option) map[string]*natskv.Store {
	f.Helper()
	all := map[string]*natskv.Store{}
	for name, open := range map[string]reaching{"store": opened, "handle": handled, "legacy handle": handledLegacy} {
		all[name] = open(f, f.nc, f.kv.Bucket(), opts...)
	}
	return all
}

// expect requires that a watch got the same entry as a read of that sequence shows.
func (f *fixture) expect(h *pushes, what string, seq uint64, value string) {
	f.Helper()
	want := driver.Entry{Value: []byte(value), Version: versionOf(seq), Floor: seq}
	f.same(what, h.await(f, want.Version), want, "a hint is what a read shows")
}

// TestWatchSeesExpiry: the server marks an expiry.
func TestWatchSeesExpiry(t *testing.T) { InBubble(t, watchSeesExpiry) }

func watchSeesExpiry(t *testing.T) {
	f := newFixture(t, func(c *jetstream.KeyValueConfig) {
		c.TTL, c.LimitMarkerTTL, c.Storage = time.Second, time.Minute, jetstream.MemoryStorage
	})
	all := map[string]*pushes{}
	for name, s := range f.each() {
		all[name] = watchAll(t, s, testKey)
	}
	seq := f.put(testKey, "v")
	for name, h := range all {
		f.expect(h, "put, to a "+name, seq, "v")
		f.expect(h, "expiry, to a "+name, seq+1, "")
	}
}

// TestWatchIgnoresRefusedWrites: a push of a state that is not in the store would be false, not
// only late.
func TestWatchIgnoresRefusedWrites(t *testing.T) { InBubble(t, watchIgnoresRefusedWrites) }

func watchIgnoresRefusedWrites(t *testing.T) {
	f := newFixture(t)
	h := watchAll(t, f.store, testKey)
	first := f.put(testKey, "first")
	for range 20 {
		if _, err := f.kv.Update(wait.Context(t), testKey, []byte("refused"), first+99); err == nil {
			t.Fatal("a wrong revision was accepted")
		}
	}
	h.await(t, versionOf(f.put(testKey, "second")))
	for _, e := range h.entries() {
		if bytes.Equal(e.Value, []byte("refused")) {
			t.Fatalf("a refused write was pushed: %+v", e)
		}
	}
}

// TestWatchAsksNothing: idle followers must cost the server only heartbeats and its pushes.
func TestWatchAsksNothing(t *testing.T) { InBubble(t, watchAsksNothing) }

func watchAsksNothing(t *testing.T) {
	f := newFixture(t)
	nc := natsnet.Connect(t, f.server.ClientURL())
	store := openStore(t, natsnet.JetStream(t, nc), f.kv.Bucket())
	h := watchAll(t, store, testKey)
	before := nc.Stats()
	for range 200 {
		h.await(t, versionOf(f.put(testKey, "v")))
	}
	in := nc.Stats().InMsgs
	wait.Until(t, "a heartbeat comes", func() bool { return nc.Stats().InMsgs > in })
	if after := nc.Stats(); after.OutMsgs != before.OutMsgs {
		t.Errorf("watching sent %d messages", after.OutMsgs-before.OutMsgs)
	}
}

// TestWatchSurvivesOperators: operators who clean up remove consumers.
func TestWatchSurvivesOperators(t *testing.T) { InBubble(t, watchSurvivesOperators) }

func watchSurvivesOperators(t *testing.T) {
	f := newFixture(t)
	h := watchAll(t, f.store, testKey)
	h.await(t, versionOf(f.put(testKey, "before")))
	stream, err := f.js.Stream(wait.Context(f), "KV_"+f.kv.Bucket())
	f.must(err)
	for name := range stream.ConsumerNames(wait.Context(f)).Name() {
		f.must(stream.DeleteConsumer(wait.Context(f), name))
	}
	h.await(t, versionOf(f.put(testKey, "after")))
}

// TestWatchOfManyIsOneConsumer: many watches use one consumer, which ends with the last watch.
func TestWatchOfManyIsOneConsumer(t *testing.T) { InBubble(t, watchOfManyIsOneConsumer) }

func watchOfManyIsOneConsumer(t *testing.T) {
	f := newFixture(t)
	consumers := func() int {
		stream, err := f.js.Stream(wait.Context(t), "KV_"+f.kv.Bucket())
		f.must(err)
		return stream.CachedInfo().State.Consumers
	}
	for range 2 { // it begins again with the next watch
		var stops []func()
		for i := range 500 {
			stop, err := f.store.Watch(wait.Context(t), fmt.Sprintf("key-%d", i), func(driver.Entry) {})
			f.must(err)
			stops = append(stops, stop)
		}
		for _, stop := range stops[1:] {
			stop()
		}
		if n := consumers(); n != 1 {
			t.Errorf("%d consumers for 500 watches, and then one; want 1", n)
		}
		stops[0]()
		wait.Until(t, "the consumer is gone", func() bool { return consumers() == 0 })
	}
}

// publishMarker writes a delete marker that carries a value.
func (f *fixture) publishMarker(body string) {
	f.Helper()
	m := nats.NewMsg("$KV." + f.kv.Bucket() + "." + testKey)
	m.Header.Set("KV-Operation", "DEL")
	m.Data = []byte(body)
	_, err := f.js.PublishMsg(wait.Context(f), m)
	f.must(err)
}
