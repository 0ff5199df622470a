//go:build integration

package natskv

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// ways are all ways of coming to a store while migrating.
func (f *fixture) ways() map[string]*Store {
	f.Helper()
	js, err := f.nc.JetStream()
	f.must(err)
	legacy, err := js.KeyValue(f.kv.Bucket())
	f.must(err)
	return map[string]*Store{
		"open":          openStore(f, f.js, f.kv.Bucket(), Migrating()),
		"handle":        closedAfter(f, FromKeyValue(f.kv, Migrating())),
		"legacy handle": closedAfter(f, FromLegacyKeyValue(legacy, Migrating())),
	}
}

// TestAllWaysTranslateAlike: what is pushed is what is read.
func TestAllWaysTranslateAlike(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withTTL(time.Minute))
	released := ours(fields{LeaderID: "a", Incarnation: "i", Nonce: "n", LeaseMillis: 1000, Term: 7, Seq: 3, Released: true})
	for name, s := range f.ways() {
		h := watchAll(t, s, testKey)
		for _, c := range []struct {
			what  string
			write func()
			want  string
		}{
			{"an old leader", func() { f.put(testKey, "server-1") }, `"leaderID":"server-1","term":0,"leaseMillis":60000,`},
			{"the same, renewed", func() { f.put(testKey, "server-1") }, `"leaderID":"server-1","term":0,"leaseMillis":60000,`},
			{"a vacant record", func() { f.put(testKey, string(ours(fields{Nonce: "n", LeaseMillis: 1000, Term: 7, Seq: 1}))) }, `"leaseMillis":52500,`},
			{"a released record", func() { f.publishMarker(string(released)) }, string(released)},
			{"a deletion", func() { f.must(f.kv.Delete(testContext(t), testKey)) }, ""},
		} {
			before := f.read(s, testKey)
			c.write()
			e := f.read(s, testKey)
			if !strings.Contains(string(e.Value), c.want) || (c.want == "") != e.Absent() {
				t.Errorf("%s: %s reads %q; want %s in it", name, c.what, e.Value, c.want)
			}
			if e.Version == before.Version || bytes.Equal(e.Value, before.Value) {
				t.Errorf("%s: %s reads as what was there before: %+v", name, c.what, e)
			}
			if pushed := h.await(t, e.Version); !bytes.Equal(pushed.Value, e.Value) {
				t.Errorf("%s: %s is pushed as %q and read as %q", name, c.what, pushed.Value, e.Value)
			}
		}
		h.stop()
	}
}

func ours(r fields) []byte { return r.encode() }

// TestReleaseIsADeletedKey: to the standard client, and to no candidate of ours.
func TestReleaseIsADeletedKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withTTL(time.Minute))
	held := fields{LeaderID: "a", Incarnation: "i", Nonce: "n", LeaseMillis: 1000, Term: 7, Seq: 3}
	for name, s := range f.ways() {
		f.must(f.kv.Purge(testContext(t), testKey))
		v, err := s.CompareAndSwap(testContext(t), testKey, f.read(s, testKey).Version, ours(held))
		f.must(err)
		if _, err := f.kv.Create(testContext(t), testKey, []byte("server-1")); !errors.Is(err, jetstream.ErrKeyExists) {
			t.Errorf("%s: an old candidate creates the key over a leader's record: %v", name, err)
		}
		released := held
		released.Released = true
		_, err = s.CompareAndSwap(testContext(t), testKey, v, ours(released))
		f.must(err)
		if e := f.read(s, testKey); !bytes.Equal(e.Value, ours(released)) {
			t.Errorf("%s: a released record reads %q", name, e.Value)
		}
		_, err = f.kv.Create(testContext(t), testKey, []byte("server-1"))
		if wants := name != "open"; errors.Is(err, jetstream.ErrKeyExists) != wants {
			t.Errorf("%s: an old candidate creates the key over a released record: %v", name, err)
		}
	}
}

func TestMigratingRefusesABucketThatCannotBeShared(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, c := range []struct {
		ttl  time.Duration
		want string
	}{
		{0, "it has no TTL"},
		{time.Second, "its TTL is"},
		{2 * time.Hour, "its TTL is"},
	} {
		kv := addBucket(t, f.js, withTTL(c.ttl))
		if _, err := Open(testContext(t), f.js, kv.Bucket(), Migrating()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("TTL %v: open: %v; want %q", c.ttl, err, c.want)
		}
		s := closedAfter(t, FromKeyValue(kv, Migrating()))
		_, read := s.Read(testContext(t), testKey)
		_, write := s.CompareAndSwap(testContext(t), testKey, "", []byte("{}"))
		_, watch := s.Watch(testContext(t), testKey, func(driver.Entry) {})
		for call, err := range map[string]error{"read": read, "write": write, "watch": watch} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("TTL %v over a handle: %s: %v; want %q", c.ttl, call, err, c.want)
			}
		}
	}
	s := closedAfter(t, FromKeyValue(wrapped{f.kv}, Migrating()))
	if _, err := s.Read(testContext(t), testKey); !errors.Is(err, errNoInfo) {
		t.Errorf("a handle that hides its stream: %v; want to hear of that", err)
	}
}

// TestTTLThatChanges: a change is followed, except that an old candidate does not notice that the TTL was taken away.
func TestTTLThatChanges(t *testing.T) {
	f := newFixture(t, withTTL(time.Minute))
	s := openStore(t, f.js, f.kv.Bucket(), Migrating())
	for _, c := range []struct{ ttl, want time.Duration }{{time.Minute, 20 * time.Second}, {2 * time.Minute, 40 * time.Second}, {0, 40 * time.Second}} {
		_, err := f.js.UpdateKeyValue(testContext(t), jetstream.KeyValueConfig{Bucket: f.kv.Bucket(), TTL: c.ttl, History: 1})
		f.must(err)
		f.read(s, testKey)
		if got := s.MaxLease(); got != c.want {
			t.Errorf("with a TTL of %v the longest lease is %v; want %v", c.ttl, got, c.want)
		}
		if _, err := tenure.New(s, testKey, tenure.Config{Lease: c.want}); err != nil {
			t.Errorf("an election with the longest lease: %v", err)
		}
		if _, err := tenure.New(s, testKey, tenure.Config{Lease: c.want + time.Second}); err == nil || !strings.Contains(err.Error(), "Lease") {
			t.Errorf("an election with a longer lease: %v", err)
		}
	}
	if got := f.store.MaxLease(); got != time.Hour {
		t.Errorf("without Migrating the longest lease is %v; want 1 h", got)
	}
}

func TestInspectWhileMigrating(t *testing.T) {
	f := newFixture(t, withTTL(30*time.Second))
	for _, c := range []struct {
		lease time.Duration
		want  []string
	}{
		{10 * time.Second, []string{"warning: migrating"}},
		{11 * time.Second, []string{"warning: migrating", "unsafe: ttl"}},
	} {
		found, err := openStore(t, f.js, f.kv.Bucket(), Migrating()).Inspect(testContext(t), c.lease)
		f.must(err)
		var got []string
		for _, x := range found {
			if slices.Contains([]string{"migrating", "ttl", "limit_marker_ttl"}, x.Setting) {
				got = append(got, x.Severity.String()+": "+x.Setting)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("lease %v: found %q; want %q", c.lease, got, c.want)
		}
	}
}
