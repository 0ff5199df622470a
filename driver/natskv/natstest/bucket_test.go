//go:build integration

package natstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
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

// streamConfigOf returns the server's configuration of a bucket's stream.
func (f *fixture) streamConfigOf(bucket string) jetstream.StreamConfig {
	f.Helper()
	stream, err := f.js.Stream(wait.Context(f), "KV_"+bucket)
	f.must(err)
	return stream.CachedInfo().Config
}

// TestCreateMatchesTheClientLibrary: with all options, the streams differ only in the first
// sequence.
func TestCreateMatchesTheClientLibrary(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, opt := range map[string]natskv.CreateOption{
		"nothing":     func(*jetstream.KeyValueConfig) {},
		"history":     func(c *jetstream.KeyValueConfig) { c.History = 64 },
		"no history":  func(c *jetstream.KeyValueConfig) { c.History, c.Replicas, c.Description = 0, 0, "" },
		"short TTL":   withTTL(time.Minute),
		"long TTL":    withTTL(time.Hour),
		"sizes":       func(c *jetstream.KeyValueConfig) { c.MaxBytes, c.MaxValueSize = 1<<20, 8192 },
		"memory":      inMemory,
		"compression": func(c *jetstream.KeyValueConfig) { c.Compression = true },
		"markers":     func(c *jetstream.KeyValueConfig) { c.LimitMarkerTTL = time.Hour },
		"metadata":    func(c *jetstream.KeyValueConfig) { c.Metadata = map[string]string{"team": "a"} },
		"republish": func(c *jetstream.KeyValueConfig) {
			c.RePublish = &jetstream.RePublish{Source: ">", Destination: "seen.>"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fixture{TB: t, js: f.js}
			bucket := newBucketName()
			var given jetstream.KeyValueConfig
			created(t, f.js, bucket, opt, func(c *jetstream.KeyValueConfig) { given = *c })
			ours := f.streamConfigOf(bucket)
			f.must(f.js.DeleteKeyValue(wait.Context(t), bucket))
			given.Bucket = bucket
			if given.LimitMarkerTTL == 0 {
				given.LimitMarkerTTL = 2 * time.Hour
			}
			_, err := f.js.CreateKeyValue(wait.Context(t), given)
			f.must(err)
			theirs := f.streamConfigOf(bucket)
			if off := time.Since(time.UnixMicro(int64(ours.FirstSeq))).Abs(); off > wait.Left() {
				t.Errorf("sequences begin at %d", ours.FirstSeq)
			}
			if ours.FirstSeq = 0; !reflect.DeepEqual(ours, theirs) {
				t.Errorf("made %+v\nwant %+v", ours, theirs)
			}
		})
	}
	source := addBucket(t, f.js)
	made := created(t, f.js, newBucketName(), func(c *jetstream.KeyValueConfig) {
		c.Sources = []*jetstream.StreamSource{{Name: source.Bucket()}}
	})
	if c := f.streamConfigOf(made.Bucket()); len(c.Sources) != 1 || c.FirstSeq != 0 {
		t.Errorf("with sources it made %+v", c)
	}
	if _, err := natskv.Open(wait.Context(t), f.js, newBucketName(), natskv.Create(func(c *jetstream.KeyValueConfig) { c.History = 65 })); !errors.Is(err, jetstream.ErrHistoryTooLarge) {
		t.Errorf("too long a history: %v", err)
	}
}

// claim writes a term as elections do, one above the floor, and returns it with the version.
func (f *fixture) claim(s *natskv.Store) (uint64, driver.Version) {
	f.Helper()
	e := f.read(s, testKey)
	term := e.Floor + 1
	v, err := s.CompareAndSwap(wait.Context(f), testKey, e.Version, fmt.Append(nil, term))
	f.must(err)
	return term, v
}

// recreate deletes the bucket and creates it again.
func (f *fixture) recreate(how func(name string)) {
	f.Helper()
	name := f.kv.Bucket()
	f.must(f.js.DeleteKeyValue(wait.Context(f), name))
	how(name)
	kv, err := f.js.KeyValue(wait.Context(f), name)
	f.must(err)
	f.kv = kv
}

func (f *fixture) byCreate(name string) { openStore(f, f.js, name, natskv.Create()) }

func (f *fixture) byHand(name string) { addBucket(f, f.js, named(name)) }

// TestLivesOfABucket: however a bucket is recreated, a new candidate never claims an earlier term.
// In a bucket of Create no version recurs in another life.
func TestLivesOfABucket(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var highest uint64
	versions := map[driver.Version]int{}
	for i, how := range []func(string){nil, f.byCreate, f.byCreate, f.byHand, f.byCreate, f.byHand, f.byHand} {
		if how != nil {
			f.recreate(how)
		}
		s := openStore(t, f.js, f.kv.Bucket()) // without knowledge of the past
		if e := f.read(s, testKey); e.Floor < highest {
			t.Fatalf("life %d begins with the floor %d after the term %d", i, e.Floor, highest)
		}
		numbered := f.streamConfigOf(f.kv.Bucket()).FirstSeq > 0
		for range 20 {
			term, v := f.claim(s)
			if term <= highest {
				t.Fatalf("life %d: term %d after %d", i, term, highest)
			}
			if other, met := versions[v]; met && numbered {
				t.Errorf("version %s is of lives %d and %d", v, other, i)
			}
			highest, versions[v] = term, i
		}
	}
}

// lastSequence returns the last sequence of the bucket's stream.
func (f *fixture) lastSequence() uint64 {
	f.Helper()
	stream, err := f.js.Stream(wait.Context(f), "KV_"+f.kv.Bucket())
	f.must(err)
	return stream.CachedInfo().State.LastSeq
}

// TestPristineOfCreate: only the first election of a bucket that begins at a time is pristine.
func TestPristineOfCreate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.recreate(f.byCreate)
	vouched := func() *natskv.Store { return openStore(t, f.js, f.kv.Bucket(), natskv.Pristine()) }
	restarted := func() {
		f.server = restart(t, f.server, nil)
		wait.Until(t, "the server is back", func() bool { return readable(vouched()) })
	}
	s := vouched()
	if e := f.read(openStore(t, f.js, f.kv.Bucket()), "a"); e.Pristine || e.Version != "" || !errors.Is(e.Notice, driver.ErrUnwritten) {
		t.Errorf("without Pristine it reads %+v", e)
	}
	restarted()
	a, b := f.read(s, "a"), f.read(s, "b")
	if !a.Pristine || !b.Pristine || a.Floor < 1<<50 || a.Floor != f.lastSequence() {
		t.Fatalf("fresh keys read %+v and %+v", a, b)
	}
	v, err := s.CompareAndSwap(wait.Context(t), "a", a.Version, []byte("x"))
	f.must(err)
	if want := versionOf(a.Floor + 1); v != want {
		t.Errorf("the first version is %s; want %s", v, want)
	}
	if _, err = s.CompareAndSwap(wait.Context(t), "b", b.Version, []byte("x")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a second claim of an untouched stream: %v; want a conflict", err)
	}
	restarted() // the first message, which older releases then lose, still exists
	if e := f.read(s, "a"); string(e.Value) != "x" || e.Version != v || e.Floor != a.Floor+1 {
		t.Errorf("after a restart: %+v", e)
	}
	f.must(purge(f.js, f.kv.Bucket())(wait.Context(t), "a"))
	for range 2 {
		if e := f.read(s, "a"); e.Pristine || !e.Absent() || e.Floor != a.Floor+1 {
			t.Errorf("after a purge: %+v", e)
		}
		restarted()
	}
}

// TestClientDropsTheSetting: an update by a key-value client keeps the sequences.
func TestClientDropsTheSetting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.recreate(f.byCreate)
	s := openStore(t, f.js, f.kv.Bucket(), natskv.Pristine())
	before := f.read(s, testKey)
	_, err := f.js.UpdateKeyValue(wait.Context(t), jetstream.KeyValueConfig{Bucket: f.kv.Bucket(), History: 1, MaxBytes: 1 << 20, LimitMarkerTTL: 2 * time.Hour})
	f.must(err)
	if first := f.streamConfigOf(f.kv.Bucket()).FirstSeq; first != 0 {
		t.Fatalf("the client keeps the first sequence now (%d), so this test checks nothing: remove it", first)
	}
	if e := f.read(s, testKey); e.Pristine || e.Floor != before.Floor {
		t.Errorf("after the update %+v; want the floor of %+v, and no claim at once", e, before)
	}
	_, v := f.claim(s)
	f.server = restart(t, f.server, nil)
	wait.Until(t, "the server is back", func() bool { return readable(s) })
	if e := f.read(s, testKey); e.Version != v || e.Floor != before.Floor+1 {
		t.Errorf("after a restart %+v; want version %s", e, v)
	}
}

// TestPurgedToATime gives an existing bucket sequences that do not recur, with the command that
// Inspect prints.
func TestPurgedToATime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := watchAll(t, f.store, testKey)
	highest, _ := f.claim(f.store)
	f.purgeStream()
	found, err := f.store.Inspect(wait.Context(t), testLease)
	f.must(err)
	i := slices.IndexFunc(found, func(f driver.Finding) bool { return f.Setting == "first_seq" })
	if i < 0 || !strings.Contains(found[i].Remedy, "purge KV_"+f.kv.Bucket()+" --seq ") {
		t.Fatalf("found %v", found)
	}
	_, text, _ := strings.Cut(found[i].Remedy, "--seq ")
	var next uint64
	if _, err := fmt.Sscanf(text, "%d", &next); err != nil || next <= highest {
		t.Fatalf("%q: %v", found[i].Remedy, err)
	}
	stream, err := f.js.Stream(wait.Context(t), "KV_"+f.kv.Bucket())
	f.must(err)
	f.must(stream.Purge(wait.Context(t), jetstream.WithPurgeSequence(next)))
	e := f.read(openStore(t, f.js, f.kv.Bucket(), natskv.Pristine()), testKey)
	if e.Pristine || e.Floor != next-1 {
		t.Errorf("after the purge %+v; want the floor %d", e, next-1)
	}
	term, v := f.claim(f.store)
	if term <= highest || v != versionOf(next) {
		t.Errorf("term %d at %s after %d", term, v, highest)
	}
	h.await(t, v)
	if found, err = f.store.Inspect(wait.Context(t), testLease); err != nil || slices.ContainsFunc(found, func(f driver.Finding) bool { return f.Setting == "first_seq" }) {
		t.Errorf("afterwards found %v, %v", found, err)
	}
}

// TestWatchOfARecreatedBucket: a watch reports that the bucket is another one, even if the bucket
// is empty and its sequences continue.
func TestWatchOfARecreatedBucket(t *testing.T) {
	t.Parallel()
	ways := map[string]func(f *fixture, name string){"by hand": (*fixture).byHand, "by Create": (*fixture).byCreate}
	for _, before := range slices.Sorted(maps.Keys(ways)) {
		for _, after := range slices.Sorted(maps.Keys(ways)) {
			t.Run(before+", then "+after, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.recreate(func(name string) { ways[before](f, name) })
				s := openStore(t, f.js, f.kv.Bucket())
				h := watchAll(t, s, testKey)
				_, v := f.claim(s)
				era := h.await(t, v).Era
				f.recreate(func(name string) { ways[after](f, name) })
				recreated := func(e driver.Entry) bool { return e.Era != 0 && e.Era != era }
				wait.Until(t, "the watch reports it", func() bool { return slices.ContainsFunc(h.entries(), recreated) })
				e := h.entries()[slices.IndexFunc(h.entries(), recreated)]
				if now := f.read(s, testKey); e.Floor != now.Floor || e.Era != now.Era || !e.Absent() {
					t.Errorf("pushed %+v; a read shows %+v", e, now)
				}
				_, v = f.claim(s)
				h.await(t, v)
			})
		}
	}
}

// TestOfflineSendsNothing: the client library keeps publishes while there is no connection and
// sends them later.
func TestOfflineSendsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nc := natsnet.Connect(t, f.server.ClientURL())
	store := openStore(t, natsnet.JetStream(t, nc), f.kv.Bucket())
	restart(t, f.server, func() {
		wait.Until(t, "the connection is lost", func() bool { return !nc.IsConnected() })
		_, err := store.CompareAndSwap(wait.Context(t), testKey, "unwritten 0", []byte("late"))
		if !errors.Is(err, connection.ErrOffline) {
			t.Errorf("a swap without a connection: %v; want an error that there is none", err)
		}
	})
	wait.Until(t, "the server is back", func() bool { return readable(store) })
	f.must(nc.Flush())
	if e := f.read(store, testKey); !e.Absent() {
		t.Errorf("a swap made without a connection was sent later: %+v", e)
	}
}

// A message is lost on its way, and then a message of another key arrives. The consumer must
// notice the gap, and its successor must deliver the lost message.
func TestLostMessageIsDeliveredLater(t *testing.T) {
	for _, c := range []struct {
		name   string
		before int // messages in the bucket when the watch begins
		after  int // messages delivered before one is lost
		opts   []natskv.Option
		why    string
	}{
		{"empty", 0, 1, nil, "the first link has no sequence to begin after, but it has delivered a message"},
		{"used", 1, 0, nil, "the first link begins after the last message of the bucket"},
		{"created", 0, 0, []natskv.Option{natskv.Create()}, "the bucket does not count from 1: even an empty one has a sequence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			if c.opts != nil {
				name := newBucketName()
				openStore(t, f.js, name, c.opts...)
				kv, err := f.js.KeyValue(wait.Context(t), name)
				f.must(err)
				f.kv = kv
			}
			for range c.before {
				f.put("earlier", "0")
			}
			proxy := natsnet.StartProxy(t, f.server.ClientURL())
			store := openStore(t, natsnet.JetStream(t, natsnet.Connect(t, proxy.URL())), f.kv.Bucket())
			got := make(chan string, 9)
			for _, key := range []string{testKey, "first", "later"} {
				see := func(e driver.Entry) { got <- key + "=" + string(e.Value) }
				if _, err := store.Watch(wait.Context(t), key, see); err != nil {
					t.Fatal(err)
				}
			}
			for range c.after {
				f.put("first", "1")
				if pushed := <-got; pushed != "first=1" {
					t.Fatalf("pushed %s", pushed)
				}
			}
			lost := proxy.Lose("$KV." + f.kv.Bucket() + "." + testKey)
			f.put(testKey, "2")
			<-lost
			f.put("later", "3")
			for {
				select {
				case pushed := <-got:
					if pushed == testKey+"=2" {
						return
					}
				case <-wait.Context(t).Done():
					t.Fatalf("the lost message is never delivered: %s", c.why)
				}
			}
		})
	}
}

// TestFrozenServer: a stopped server still accepts connections, in its kernel. The client library
// then holds its lock until its own timeout, which is too late for every test here. Each call must
// end with its context.
//
// This test cannot run in a bubble, where time stands still while a goroutine waits for a lock.
func TestFrozenServer(t *testing.T) {
	for name, reach := range map[string]reaching{
		"store": opened, "handle": handled, "legacy handle": handledLegacy,
	} {
		t.Run(name, func(t *testing.T) { frozenServer(t, reach) })
	}
}

func frozenServer(t *testing.T, reach reaching) {
	server := StartServer(t)
	kv := addBucket(t, natsnet.JetStream(t, natsnet.Connect(t, server.ClientURL())))
	p := natsnet.StartProxy(t, server.ClientURL())
	nc := natsnet.Connect(t, p.URL(), nats.Timeout(time.Hour))
	s := reach(t, nc, kv.Bucket())
	before := runtime.NumGoroutine()
	heal := p.Cut()
	p.Drop() // so that the library connects again and waits for the server's greeting
	wait.Until(t, "the library is at it", func() bool { return p.Connections() > 0 })
	for what, call := range map[string]func(context.Context) error{
		"read": func(ctx context.Context) error { return failure(s.Read(ctx, testKey)) },
		"swap": func(ctx context.Context) error { return failure(s.CompareAndSwap(ctx, testKey, "1", []byte("v"))) },
		"watch": func(ctx context.Context) error {
			pushes := make(chan driver.Entry, 9)
			stop, err := s.Watch(ctx, testKey, func(e driver.Entry) { pushes <- e })
			if err != nil {
				return err
			}
			defer stop()
			return (<-pushes).Lost
		},
		"inspect": func(ctx context.Context) error { return failure(s.Inspect(ctx, time.Second)) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := call(ctx); !leftOpen(err) {
			t.Errorf("%s: %v; want an error that leaves it open", what, err)
		}
		cancel()
	}
	heal()
	wait.Until(t, "the store is reached again", func() bool { return readable(s) })
	wait.Until(t, "what was abandoned has ended", func() bool { return runtime.NumGoroutine() <= before+4 })
}
