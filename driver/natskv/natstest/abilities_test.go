package natstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
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

// says returns a function that answers with one text.
func says(text string) func() []byte { return func() []byte { return []byte(text) } }

func (f *fixture) announce(s *natskv.Store, key, text string) (stop func()) {
	f.Helper()
	stop, err := s.Announce(wait.Context(f), key, says(text))
	f.must(err)
	return stop
}

// candidates returns the sorted answers, as one text.
func (f *fixture) candidates(s *natskv.Store, key string) string {
	f.Helper()
	all, err := s.Candidates(wait.Context(f), key)
	f.must(err)
	var texts []string
	for _, one := range all {
		texts = append(texts, string(one))
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// subscriptions returns the number of those that the server has for presence.
func (f *fixture) subscriptions() (n int) {
	f.Helper()
	all, err := f.server.Subsz(&server.SubszOptions{Subscriptions: true, Limit: 10_000})
	f.must(err)
	for _, s := range all.Subs {
		if strings.HasPrefix(s.Subject, "tenure.candidates.") {
			n++
		}
	}
	return n
}

// Each process answers once for all its candidates of an election, over one subscription for all
// its elections, and nothing is sent until it is asked.
func TestCandidatesAnswerWhenAsked(t *testing.T) { InBubble(t, answersWhenAsked) }

func answersWhenAsked(t *testing.T) {
	f := newFixture(t)
	other := openStore(t, natsnet.JetStream(t, natsnet.Connect(t, f.server.ClientURL())), f.kv.Bucket())
	if got := f.candidates(f.store, testKey); got != "" {
		t.Errorf("without a candidate: %q", got)
	}
	stops := []func(){f.announce(f.store, testKey, "a"), f.announce(f.store, testKey, "b"), f.announce(other, testKey, "c")}
	for i := range 1000 {
		f.announce(f.store, fmt.Sprint("other-", i), "d")
	}
	if n := f.subscriptions(); n != 2 {
		t.Errorf("%d subscriptions; want one for each process", n)
	}
	before := f.server.NumSubscriptions()
	quiet := f.nc.Stats()
	time.Sleep(time.Hour)
	if now := f.nc.Stats(); now.OutMsgs != quiet.OutMsgs || now.InMsgs != quiet.InMsgs {
		t.Errorf("unasked, %d messages were sent and %d received", now.OutMsgs-quiet.OutMsgs, now.InMsgs-quiet.InMsgs)
	}
	if got := f.candidates(other, testKey); got != "a b c" {
		t.Errorf("the candidates are %q", got)
	}
	if now := f.nc.Stats(); now.OutMsgs != quiet.OutMsgs+1 || now.InMsgs != quiet.InMsgs+1 {
		t.Errorf("asked once, %d messages were sent and %d received", now.OutMsgs-quiet.OutMsgs, now.InMsgs-quiet.InMsgs)
	}
	if all, err := f.store.Candidates(wait.Context(t), ""); err != nil || len(all) != 1003 {
		t.Errorf("%d candidates of all elections, %v", len(all), err)
	}
	if got := f.candidates(f.store, "nothing"); got != "" {
		t.Errorf("of an election without candidates: %q", got)
	}
	for _, stop := range stops {
		stop()
		stop()
	}
	if got := f.candidates(f.store, testKey); got != "" {
		t.Errorf("after they have gone: %q", got)
	}
	wait.Until(t, "unused subscriptions end", func() bool { return f.server.NumSubscriptions() < before })
	_ = f.store.Close()
	wait.Until(t, "no subscription is left", func() bool { return f.subscriptions() == 0 })
	if _, err := f.store.Announce(wait.Context(t), testKey, says("e")); err == nil {
		t.Error("a closed store announces")
	}
}

// Questions cannot make a process fill its connection.
func TestAnswersAreBounded(t *testing.T) { InBubble(t, boundedAnswers) }

func boundedAnswers(t *testing.T) {
	f := newFixture(t)
	long := strings.Repeat("x", driver.MaxPresence)
	for i := range 1000 {
		f.announce(f.store, fmt.Sprintf("e-%03d", i), long)
	}
	f.announce(f.store, testKey, long+"x")
	f.announce(f.store, testKey, "two\nlines")
	f.announce(f.store, testKey, "")
	if got := f.candidates(f.store, testKey); got != "" {
		t.Errorf("unfit answers were sent: %q", got)
	}
	const maxAnswer = 256 << 10
	before := f.nc.Stats().OutBytes
	for range 100 {
		f.must(f.nc.PublishRequest("tenure.candidates."+f.kv.Bucket(), "nowhere", nil))
	}
	f.must(f.nc.Flush())
	time.Sleep(100 * time.Millisecond)
	if sent := f.nc.Stats().OutBytes - before; sent < maxAnswer/2 || sent > maxAnswer+10_000 {
		t.Errorf("%d bytes were sent within a second", sent)
	}
	time.Sleep(time.Second)
	if got := f.candidates(f.store, "e-999"); got != long {
		t.Errorf("a second later: %d bytes", len(got))
	}
}

// A subscription survives the loss of the connection. Without one, a question fails at once.
func TestPresenceOutlivesTheConnection(t *testing.T) { InBubble(t, presenceOutlives) }

func presenceOutlives(t *testing.T) {
	f := newFixture(t)
	watcher := openStore(t, natsnet.JetStream(t, natsnet.Connect(t, f.server.ClientURL())), f.kv.Bucket())
	f.announce(f.store, testKey, "a")
	f.must(f.nc.ForceReconnect())
	wait.Until(t, "it answers again", func() bool { return f.candidates(watcher, testKey) == "a" })
	f.nc.Close()
	if _, err := f.store.Candidates(wait.Context(t), testKey); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("without a connection: %v", err)
	}
}

func TestPresenceOverAHandle(t *testing.T) { InBubble(t, presenceOverAHandle) }

func presenceOverAHandle(t *testing.T) {
	s := natskv.FromKeyValue(newFixture(t).kv)
	if _, err := s.Announce(t.Context(), testKey, says("a")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("announce: %v", err)
	}
	if _, err := s.Candidates(t.Context(), testKey); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("ask: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// toy shows a value with its version and the bucket's TTL, and writes one with its arguments. It
// marks the value "released", and refuses the value "bad".
type toy struct{}

var errToy = errors.New("not for toys")

func (toy) Check(ttl time.Duration) error {
	if ttl > 0 && ttl < time.Minute {
		return errToy
	}
	return nil
}

func (toy) MaxLease(ttl time.Duration) time.Duration { return ttl / 2 }

func (toy) Show(ttl time.Duration, value []byte, v driver.Version) []byte {
	return fmt.Appendf(nil, "%s, %v, %v", value, ttl, v)
}

func (toy) Write(ttl time.Duration, value []byte, overAbsence bool) ([]byte, bool, error) {
	if string(value) == "bad" {
		return nil, false, errToy
	}
	return fmt.Appendf(nil, "%s (%v %v)", value, ttl, overAbsence), string(value) == "released", nil
}

func (toy) Inspect(b natskv.SharedBucket, lease time.Duration) []driver.Finding {
	return []driver.Finding{{Severity: driver.Advice, Setting: "ttl", Problem: fmt.Sprintf("%+v %v", b, lease), Remedy: "nothing"}}
}

func TestTranslator(t *testing.T) { InBubble(t, translates) }

func translates(t *testing.T) {
	f := newFixture(t, inMemory, withTTL(time.Minute))
	for name, s := range f.each(natskv.Translating(toy{})) {
		h := watchAll(t, s, testKey)
		prev, seq := f.read(s, testKey).Version, f.counted(f.read(s, testKey).Floor)
		for _, c := range []struct {
			what, value, want string
			absent            bool // for clients of the bucket
		}{
			{"a value over an absence", "held", "held (1m0s true)", false},
			{"a value over another", "released", "released (1m0s false)", name == "store"},
		} {
			v, err := s.CompareAndSwap(wait.Context(t), testKey, prev, []byte(c.value))
			f.must(err)
			seq++
			e := f.read(s, testKey)
			if want := fmt.Sprintf("%s, 1m0s, %v", c.want, v); v != versionOf(seq) || e.Version != v || string(e.Value) != want {
				t.Errorf("%s: %s: version %s reads %+v; want %q", name, c.what, v, e, want)
			}
			if pushed := h.await(t, v); !bytes.Equal(pushed.Value, e.Value) {
				t.Errorf("%s: %s is pushed as %q and read as %q", name, c.what, pushed.Value, e.Value)
			}
			_, err = f.kv.Get(wait.Context(t), testKey)
			if errors.Is(err, jetstream.ErrKeyNotFound) != c.absent {
				t.Errorf("%s: %s: clients of the bucket see %v", name, c.what, err)
			}
			if _, err := s.CompareAndSwap(wait.Context(t), testKey, v, []byte("bad")); !errors.Is(err, errToy) || f.read(s, testKey).Version != v {
				t.Errorf("%s: a value that is refused: %v", name, err)
			}
			prev = v
		}
		f.must(f.kv.Delete(wait.Context(t), testKey))
		e := f.read(s, testKey)
		if pushed := h.await(t, e.Version); !e.Absent() || !pushed.Absent() {
			t.Errorf("%s: a deleted key reads %+v and is pushed as %+v", name, e, pushed)
		}
	}
}

// TestTranslatorRefuses: a bucket that cannot or may not be shared is not changed.
func TestTranslatorRefuses(t *testing.T) { InBubble(t, translatorRefuses) }

func translatorRefuses(t *testing.T) {
	f := newFixture(t, inMemory, withTTL(time.Second))
	if _, err := natskv.Open(wait.Context(t), f.js, f.kv.Bucket(), natskv.Translating(toy{})); !errors.Is(err, errToy) {
		t.Errorf("open: %v", err)
	}
	for name, c := range map[string]struct {
		kv   jetstream.KeyValue
		want func(error) bool
	}{"refused": {f.kv, func(err error) bool { return errors.Is(err, errToy) }}, "not known": {wrapped{f.kv}, hidesStream}} {
		s := closedAfter(t, natskv.FromKeyValue(c.kv, natskv.Translating(toy{})))
		_, read := s.Read(wait.Context(t), testKey)
		_, write := s.CompareAndSwap(wait.Context(t), testKey, "", []byte("v"))
		_, watch := s.Watch(wait.Context(t), testKey, func(driver.Entry) {})
		for call, err := range map[string]error{"read": read, "write": write, "watch": watch} {
			if !c.want(err) {
				t.Errorf("%s: %s: %v", name, call, err)
			}
		}
	}
}

// TestTranslatorKnowsTheTTL: a change is followed, except that a TTL that was removed still counts.
func TestTranslatorKnowsTheTTL(t *testing.T) { InBubble(t, translatorKnowsTheTTL) }

func translatorKnowsTheTTL(t *testing.T) {
	f := newFixture(t, inMemory, withTTL(time.Minute))
	s := openStore(t, f.js, f.kv.Bucket(), natskv.Translating(toy{}))
	for _, c := range []struct{ ttl, want time.Duration }{{time.Minute, time.Minute}, {time.Hour, time.Hour}, {0, time.Hour}} {
		_, err := f.js.UpdateKeyValue(wait.Context(t), jetstream.KeyValueConfig{
			Bucket: f.kv.Bucket(), TTL: c.ttl, History: 1, Storage: jetstream.MemoryStorage,
		})
		f.must(err)
		f.read(s, testKey)
		if got := s.MaxLease(); got != c.want/2 {
			t.Errorf("with a TTL of %v the longest lease is %v; want %v", c.ttl, got, c.want/2)
		}
		found, err := s.Inspect(wait.Context(t), time.Second)
		f.must(err)
		want := fmt.Sprintf("%+v 1s", natskv.SharedBucket{Name: f.kv.Bucket(), TTL: c.ttl, Marks: true})
		if all := fmt.Sprint(found); !strings.Contains(all, want) || strings.Count(all, ": ttl: ") != 1 {
			t.Errorf("with a TTL of %v the findings are %v; want %q", c.ttl, found, want)
		}
	}
	if got := f.store.MaxLease(); got != time.Hour {
		t.Errorf("without a Translator the longest lease is %v", got)
	}
}

// TestTranslatorHasRights: a missing right is also detected with a Translator.
func TestTranslatorHasRights(t *testing.T) { InBubble(t, translatorHasRights) }

func translatorHasRights(t *testing.T) {
	f := newRightsFixture(t, observerRights, "_INBOX.>")
	s := openStore(t, natsnet.JetStream(t, f.user), "B", natskv.Translating(toy{}))
	if err := s.CheckRights(wait.Context(t), testKey); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("without the right: %v", err)
	}
	if err := natskv.FromKeyValue(f.kv, natskv.Translating(toy{})).CheckRights(context.Background(), testKey); err != nil {
		t.Errorf("over a handle: %v", err)
	}
}

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
