package mixed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/internal/inprocess"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/electiontest"
)

const testKey = "billing"

// bucket is the bucket B on a server in a bubble.
type bucket struct {
	*testing.T
	nc *nats.Conn
	js jetstream.JetStream
	kv jetstream.KeyValue
}

// withBucket runs a test in virtual time, on a bucket with this TTL.
func withBucket(t *testing.T, ttl time.Duration, test func(b *bucket)) {
	t.Helper()
	inprocess.Bubble(t, func(t *testing.T) {
		b := &bucket{T: t, nc: inprocess.Connect(t, inprocess.Start(t, &server.Options{}))}
		b.js = newJetStream(t, b.nc)
		b.kv = b.add("B", ttl)
		test(b)
	})
}

// add creates a bucket in memory, because files take real time.
func (b *bucket) add(name string, ttl time.Duration) jetstream.KeyValue {
	b.Helper()
	kv, err := b.js.CreateKeyValue(b.Context(), jetstream.KeyValueConfig{Bucket: name, TTL: ttl, Storage: jetstream.MemoryStorage})
	b.must(err)
	return kv
}

func (b *bucket) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bucket) open(opts ...natskv.Option) *natskv.Store {
	b.Helper()
	s, err := natskv.Open(b.Context(), b.js, "B", opts...)
	b.must(err)
	return closedAfter(b, s)
}

func closedAfter(t testing.TB, s *natskv.Store) *natskv.Store {
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// ways returns a store for each way to open one while migrating.
func (b *bucket) ways() map[string]*natskv.Store {
	b.Helper()
	js, err := b.nc.JetStream()
	b.must(err)
	legacy, err := js.KeyValue("B")
	b.must(err)
	return map[string]*natskv.Store{
		"open":          b.open(Migrating()),
		"handle":        closedAfter(b, natskv.FromKeyValue(b.kv, Migrating())),
		"legacy handle": closedAfter(b, natskv.FromLegacyKeyValue(legacy, Migrating())),
	}
}

func (b *bucket) read(s *natskv.Store) driver.Entry {
	b.Helper()
	e, err := s.Read(b.Context(), testKey)
	b.must(err)
	return e
}

func (b *bucket) put(value []byte) {
	b.Helper()
	_, err := b.kv.Put(b.Context(), testKey, value)
	b.must(err)
}

// putMarked writes a value that clients of the bucket take for a deleted key.
func (b *bucket) putMarked(value []byte) {
	b.Helper()
	_, err := b.js.PublishMsg(b.Context(), &nats.Msg{
		Subject: "$KV.B." + testKey, Header: nats.Header{"KV-Operation": {"DEL"}}, Data: value,
	})
	b.must(err)
}

// TestAllHandlesTranslateAlike: pushes show the same as reads.
func TestAllHandlesTranslateAlike(t *testing.T) { withBucket(t, time.Minute, allWaysTranslateAlike) }

func allWaysTranslateAlike(b *bucket) {
	released := fields{LeaderID: "a", Incarnation: "i", Nonce: "n", LeaseMillis: 1000, Term: 7, Seq: 3, Released: true}.encode()
	for name, s := range b.ways() {
		var mu sync.Mutex
		var pushed driver.Entry
		stop, err := s.Watch(b.Context(), testKey, func(e driver.Entry) {
			mu.Lock()
			defer mu.Unlock()
			pushed = e
		})
		b.must(err)
		for _, c := range []struct {
			what  string
			write func()
			want  string
		}{
			{"an old leader", func() { b.put([]byte("server-1")) }, `"leaderID":"server-1","term":0,"leaseMillis":60000,`},
			{"the same, renewed", func() { b.put([]byte("server-1")) }, `"leaderID":"server-1","term":0,"leaseMillis":60000,`},
			{"a vacant record", func() { b.put(fields{Nonce: "n", LeaseMillis: 1000, Term: 7, Seq: 1}.encode()) }, `"leaseMillis":52500,`},
			{"a released record", func() { b.putMarked(released) }, string(released)},
			{"a deletion", func() { b.must(b.kv.Delete(b.Context(), testKey)) }, ""},
		} {
			before := b.read(s)
			c.write()
			e := b.read(s)
			if !strings.Contains(string(e.Value), c.want) || (c.want == "") != e.Absent() {
				b.Errorf("%s: %s reads %q; want %s in it", name, c.what, e.Value, c.want)
			}
			if e.Version == before.Version || bytes.Equal(e.Value, before.Value) {
				b.Errorf("%s: %s reads as what was there before: %+v", name, c.what, e)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			mu.Lock()
			if pushed.Version != e.Version || !bytes.Equal(pushed.Value, e.Value) {
				b.Errorf("%s: %s is pushed as %+v and read as %+v", name, c.what, pushed, e)
			}
			mu.Unlock()
		}
		stop()
	}
}

// TestReleaseIsADeletedKey: the standard client sees a deleted key, and Tenure candidates see a
// release.
func TestReleaseIsADeletedKey(t *testing.T) { withBucket(t, time.Minute, releaseIsADeletedKey) }

func releaseIsADeletedKey(b *bucket) {
	held := fields{LeaderID: "a", Incarnation: "i", Nonce: "n", LeaseMillis: 1000, Term: 7, Seq: 3}
	released := held
	released.Released = true
	for name, s := range b.ways() {
		b.must(b.kv.Purge(b.Context(), testKey))
		v, err := s.CompareAndSwap(b.Context(), testKey, b.read(s).Version, held.encode())
		b.must(err)
		if _, err := b.kv.Create(b.Context(), testKey, []byte("server-1")); !errors.Is(err, jetstream.ErrKeyExists) {
			b.Errorf("%s: an old candidate creates the key over a leader's record: %v", name, err)
		}
		_, err = s.CompareAndSwap(b.Context(), testKey, v, released.encode())
		b.must(err)
		if e := b.read(s); !bytes.Equal(e.Value, released.encode()) {
			b.Errorf("%s: a released record reads %q", name, e.Value)
		}
		_, err = b.kv.Create(b.Context(), testKey, []byte("server-1"))
		if wants := name != "open"; errors.Is(err, jetstream.ErrKeyExists) != wants {
			b.Errorf("%s: an old candidate creates the key over a released record: %v", name, err)
		}
	}
}

// wrapped hides the methods of the library's own handle that are not in its interface.
type wrapped struct{ jetstream.KeyValue }

func (w wrapped) Status(context.Context) (jetstream.KeyValueStatus, error) { return nil, nil }

func TestMigratingRefusesABucketThatCannotBeShared(t *testing.T) {
	withBucket(t, time.Minute, refusesABucketThatCannotBeShared)
}

func refusesABucketThatCannotBeShared(b *bucket) {
	refused := func(what, want string, kv jetstream.KeyValue) {
		s := closedAfter(b, natskv.FromKeyValue(kv, Migrating()))
		_, read := s.Read(b.Context(), testKey)
		_, write := s.CompareAndSwap(b.Context(), testKey, "", []byte("{}"))
		_, watch := s.Watch(b.Context(), testKey, func(driver.Entry) {})
		for call, err := range map[string]error{"read": read, "write": write, "watch": watch} {
			if err == nil || !strings.Contains(err.Error(), want) {
				b.Errorf("%s over a handle: %s: %v; want %q", what, call, err, want)
			}
		}
	}
	for _, c := range []struct {
		name string
		ttl  time.Duration
		want string
	}{
		{"none", 0, "it has no TTL"},
		{"short", time.Second, "its TTL is"},
		{"long", 2 * time.Hour, "its TTL is"},
	} {
		kv := b.add(c.name, c.ttl)
		if _, err := natskv.Open(b.Context(), b.js, c.name, Migrating()); !errors.Is(err, ErrUnshareable) || !strings.Contains(err.Error(), c.want) {
			b.Errorf("TTL %v: open: %v; want %q", c.ttl, err, c.want)
		}
		refused("TTL "+c.ttl.String(), c.want, kv)
	}
	refused("a hidden stream", "does not describe its stream", wrapped{b.kv})
}

// TestTTLThatChanges: a change is followed. But old candidates do not notice that the TTL was
// removed, so that change is not.
func TestTTLThatChanges(t *testing.T) { withBucket(t, time.Minute, ttlThatChanges) }

func ttlThatChanges(b *bucket) {
	s, plain := b.open(Migrating()), b.open()
	for _, c := range []struct{ ttl, want time.Duration }{{time.Minute, 20 * time.Second}, {2 * time.Minute, 40 * time.Second}, {0, 40 * time.Second}} {
		_, err := b.js.UpdateKeyValue(b.Context(), jetstream.KeyValueConfig{Bucket: "B", TTL: c.ttl, Storage: jetstream.MemoryStorage})
		b.must(err)
		b.read(s)
		if got := s.MaxLease(); got != c.want {
			b.Errorf("with a TTL of %v the longest lease is %v; want %v", c.ttl, got, c.want)
		}
		if _, err := tenure.New(s, testKey, tenure.Config{Lease: c.want}); err != nil {
			b.Errorf("an election with the longest lease: %v", err)
		}
		if _, err := tenure.New(s, testKey, tenure.Config{Lease: c.want + time.Second}); err == nil || !strings.Contains(err.Error(), "Lease") {
			b.Errorf("an election with a longer lease: %v", err)
		}
	}
	if got := plain.MaxLease(); got != tenure.MaxLease {
		b.Errorf("without Migrating the longest lease is %v; want %v", got, tenure.MaxLease)
	}
}

func TestInspectWhileMigrating(t *testing.T) { withBucket(t, 30*time.Second, inspectWhileMigrating) }

func inspectWhileMigrating(b *bucket) {
	for _, c := range []struct {
		lease time.Duration
		want  []string
	}{
		{10 * time.Second, []string{"warning: migrating"}},
		{11 * time.Second, []string{"warning: migrating", "unsafe: ttl"}},
	} {
		found, err := b.open(Migrating()).Inspect(b.Context(), c.lease)
		b.must(err)
		var got []string
		for _, x := range found {
			if slices.Contains([]string{"migrating", "ttl", "limit_marker_ttl"}, x.Setting) {
				got = append(got, x.Severity.String()+": "+x.Setting)
			}
		}
		if !slices.Equal(got, c.want) {
			b.Errorf("lease %v: found %q; want %q", c.lease, got, c.want)
		}
	}
}

// TestInspectNamesEachDanger checks the findings about a bucket and about the connection to it.
func TestInspectNamesEachDanger(t *testing.T) {
	for _, c := range []struct {
		why  string
		b    natskv.SharedBucket
		want []string
	}{
		{"as recommended", natskv.SharedBucket{TTL: time.Minute, Marks: true}, []string{"warning: migrating"}},
		{"no crash would be noticed", natskv.SharedBucket{Marks: true}, []string{"warning: migrating", "unsafe: ttl"}},
		{"releases are not marked", natskv.SharedBucket{TTL: time.Minute}, []string{"warning: migrating", "advice: migrating"}},
		{"old client libraries do not know markers", natskv.SharedBucket{TTL: time.Minute, MarkerTTL: time.Hour, Marks: true},
			[]string{"warning: migrating", "warning: limit_marker_ttl"}},
	} {
		var got []string
		for _, x := range (translator{}).Inspect(c.b, time.Second) {
			got = append(got, x.Severity.String()+": "+x.Setting)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q; want %q", c.why, got, c.want)
		}
	}
}

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
