//go:build integration

package natstest

import (
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
				if strings.HasPrefix(c.name, "expired") {
					// A handle does not recognize the server's markers, and the older one does not
					// show the time.
					c.want.Notice = got.Notice
				}
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

// The notice names an option, so it comes only where the option helps.
func TestNoticeOfPristine(t *testing.T) {
	f := newFixture(t)
	stores := map[*natskv.Store]bool{
		f.store: true,
		openStore(t, f.js, f.kv.Bucket(), natskv.Pristine()): false,
		handled(t, f.nc, f.kv.Bucket()):                      false,
	}
	check := func(used bool) {
		for s, notes := range stores {
			e := f.read(s, "another")
			if named := errors.Is(e.Notice, driver.ErrUnwritten); named != (notes && !used) {
				t.Errorf("used %v, noted %v: %+v", used, notes, e)
			}
		}
	}
	check(false)
	f.put(testKey, "v")
	check(true)
}
