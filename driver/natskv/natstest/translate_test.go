package natstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

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
