//go:build integration

package natstest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
)

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
