//go:build integration

package natstest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestReadStates puts a key into a state with the standard client and reads it over each kind of
// handle.
func TestReadStates(t *testing.T) {
	t.Parallel()
	limitMarkers := func(c *jetstream.KeyValueConfig) { c.TTL, c.LimitMarkerTTL = time.Second, time.Minute }
	plain := func(*jetstream.KeyValueConfig) {}
	for _, c := range []struct {
		name   string
		why    string
		config func(*jetstream.KeyValueConfig)
		make   func(f *fixture)
		want   driver.Entry // its floor counts from the beginning of the bucket
	}{
		{"never written", "the first leader of a bucket need not wait, if a caller vouches for it", plain,
			func(*fixture) {},
			driver.Entry{Version: "unwritten 0", Pristine: true}},
		{"never written in memory", "a restart empties memory, and an old leader may still lead", inMemory,
			func(*fixture) {},
			driver.Entry{}},
		{"another key written", "the stream no longer vouches for this key's past", plain,
			func(f *fixture) { f.put("other", "x") },
			driver.Entry{Floor: 1, Notice: natskv.ErrPurged}}, // if there ever was one
		{"written", "the version is what a swap expects", plain,
			func(f *fixture) { f.put("other", "x"); f.put(testKey, "v") },
			driver.Entry{Value: []byte("v"), Version: "2", Floor: 2}},
		{"deleted", "nats kv del forces a new leader; the marker has a version of its own", plain,
			func(f *fixture) { f.put(testKey, "v"); f.must(f.kv.Delete(wait.Context(f), testKey)) },
			driver.Entry{Version: "2", Floor: 2, Notice: natskv.ErrDeleted}},
		{"purged", "nats kv purge leaves a marker too", plain,
			func(f *fixture) { f.put(testKey, "v"); f.must(f.kv.Purge(wait.Context(f), testKey)) },
			driver.Entry{Version: "2", Floor: 2, Notice: natskv.ErrPurged}},
		{"marker with a body", "a released record that older programs take for a deleted key is a record", plain,
			func(f *fixture) { f.put(testKey, "v"); f.publishMarker("released") },
			driver.Entry{Value: []byte("released"), Version: "2", Floor: 2, Notice: natskv.ErrDeleted}},
		{"marker removed", "nothing is left but the sequence, which must still be above all terms", plain,
			func(f *fixture) { f.put(testKey, "v"); f.put("other", "x"); f.purgeStream() },
			driver.Entry{Floor: 2, Notice: natskv.ErrPurged}},
		{"expired", "buckets made with --ttl lose a record without a trace", withTTL(300 * time.Millisecond),
			func(f *fixture) { f.put("other", "x"); f.put(testKey, "v"); f.awaitAbsence() },
			driver.Entry{Floor: 2, Notice: natskv.ErrExpired}},
		{"expired with a marker", "the server's own marker is written over like any other", limitMarkers,
			func(f *fixture) { f.put(testKey, "v"); f.awaitMarker() },
			driver.Entry{Version: "2", Floor: 2, Notice: natskv.ErrExpired}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, c.config)
			c.make(f)
			f.same("read", f.read(openStore(t, f.js, f.kv.Bucket(), natskv.Pristine()), testKey), c.want, c.why)
			if c.want.Pristine {
				c.want = driver.Entry{} // a handle cannot tell
			}
			for what, s := range map[string]driver.Store{"handle": handled(t, f.nc, f.kv.Bucket()), "legacy handle": handledLegacy(t, f.nc, f.kv.Bucket())} {
				got := f.read(s, testKey)
				// A handle does not recognize the server's markers, and the older one does not show
				// the time.
				c.want.Notice = got.Notice
				f.same("read by "+what, got, c.want, c.why)
			}
		})
	}
}

func (f *fixture) purgeStream() {
	f.Helper()
	f.must(purge(f.js, f.kv.Bucket())(wait.Context(f), testKey))
}

func (f *fixture) awaitAbsence() {
	f.Helper()
	wait.Until(f, "the key expires", func() bool {
		_, err := f.kv.Get(wait.Context(f), testKey)
		return errors.Is(err, jetstream.ErrKeyNotFound)
	})
}

// awaitMarker waits until the server has put a marker in place of the first message. The server
// does this after it has removed that message.
func (f *fixture) awaitMarker() {
	f.Helper()
	stream, err := f.js.Stream(wait.Context(f), "KV_"+f.kv.Bucket())
	f.must(err)
	wait.Until(f, "the server marks what has expired", func() bool {
		m, err := stream.GetLastMsgForSubject(wait.Context(f), "$KV."+f.kv.Bucket()+"."+testKey)
		return err == nil && m.Sequence > 1
	})
}

// TestFloorSurvivesRestart: everything has expired, so the files keep only the last sequence.
func TestFloorSurvivesRestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withTTL(300*time.Millisecond))
	for range 20 {
		f.put(testKey, "v")
	}
	f.awaitAbsence()
	restart(t, f.server, nil)
	wait.Until(t, "the server is back", func() bool { return readable(f.store) })
	e := f.read(f.store, testKey)
	if f.counted(e.Floor) < 20 || e.Pristine {
		t.Errorf("after a restart the absent key reads %+v; want a floor of 20 from the beginning", e)
	}
}

// The condition is that the stream has never had a message. So another election ends it.
func TestPristineAppliesToTheWholeStream(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	vouched := openStore(t, f.js, f.kv.Bucket(), natskv.Pristine())
	a, b := f.read(vouched, "a"), f.read(vouched, "b")
	if !a.Pristine || !b.Pristine {
		t.Fatalf("fresh keys read %+v and %+v", a, b)
	}
	if e := f.read(f.store, "a"); e.Pristine || e.Version != "" {
		t.Fatalf("without Pristine a fresh key reads %+v", e)
	}
	_, err := f.store.CompareAndSwap(wait.Context(t), "a", a.Version, []byte("x"))
	f.must(err)
	if _, err = f.store.CompareAndSwap(wait.Context(t), "b", b.Version, []byte("x")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a second claim of an untouched stream: %v; want a conflict", err)
	}
	e := f.read(f.store, "b")
	_, err = f.store.CompareAndSwap(wait.Context(t), "b", e.Version, []byte("x"))
	f.must(err)
}

// TestReadGoesToTheLeader counts requests: a Direct Get would go to another server.
func TestReadGoesToTheLeader(t *testing.T) {
	f := newFixture(t)
	f.put(testKey, "v")
	sub, err := f.nc.SubscribeSync("$JS.API.>")
	f.must(err)
	f.must(f.nc.Flush())
	f.read(f.store, testKey)
	f.must(f.nc.Flush())
	pending, _, err := sub.Pending()
	f.must(err)
	got := []string{}
	for range pending {
		m, err := sub.NextMsgWithContext(wait.Context(t))
		f.must(err)
		got = append(got, m.Subject)
	}
	bucket := "KV_" + f.kv.Bucket()
	if want := []string{"$JS.API.STREAM.MSG.GET." + bucket, "$JS.API.STREAM.INFO." + bucket}; !slices.Equal(got, want) {
		t.Errorf("a read asked %q; want %q alone", got, want)
	}
}

// TestEndedContextSendsNothing: a request that is not sent cannot be applied later.
func TestEndedContextSendsNothing(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(wait.Context(t))
	cancel()
	before := f.nc.Stats().OutMsgs
	if _, err := f.store.Read(ctx, testKey); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	if _, err := f.store.CompareAndSwap(ctx, testKey, "", []byte("v")); !errors.Is(err, context.Canceled) {
		t.Errorf("swap: %v", err)
	}
	if after := f.nc.Stats().OutMsgs; after != before {
		t.Errorf("%d messages were sent", after-before)
	}
}

// TestDeletedBucketIsNamed: the server reports only that a stream is not found.
func TestDeletedBucketIsNamed(t *testing.T) {
	InBubble(t, func(t *testing.T) {
		f := newFixture(t)
		name := f.kv.Bucket()
		f.must(f.js.DeleteKeyValue(wait.Context(t), name))
		_, err := f.store.Read(wait.Context(t), testKey)
		if err == nil || !strings.Contains(err.Error(), "the bucket is gone") || !strings.Contains(err.Error(), "nats kv add "+name) {
			t.Errorf("got %v", err)
		}
	})
}

// The hint names an option, so it is empty where the option is set or cannot be.
func TestPristineHint(t *testing.T) {
	f := newFixture(t)
	for what, c := range map[string]struct {
		store *natskv.Store
		hints bool
	}{
		"a store without Pristine": {f.store, true},
		"a store with it":          {openStore(t, f.js, f.kv.Bucket(), natskv.Pristine()), false},
		"a store over a handle":    {handled(t, f.nc, f.kv.Bucket()).(*natskv.Store), false},
	} {
		if hint := c.store.PristineHint(); (hint != "") != c.hints {
			t.Errorf("the hint of %s is %q", what, hint)
		}
	}
}
