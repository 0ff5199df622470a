package s3lect_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/s3lect"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/test/able"
)

// scripted gives the answers of a script.
type scripted struct {
	get func(ctx context.Context) ([]byte, string, error)
	put func(ctx context.Context) error
}

func (s scripted) Get(ctx context.Context, _ string) ([]byte, string, error) { return s.get(ctx) }

func (s scripted) PutIfMatch(ctx context.Context, _ string, _ []byte, _ string) error {
	return s.put(ctx)
}

func TestOutcomesOfWrites(t *testing.T) {
	broken := errors.New("connection reset")
	found := func(value, etag string, err error) func(context.Context) ([]byte, string, error) {
		return func(context.Context) ([]byte, string, error) { return []byte(value), etag, err }
	}
	cases := []struct {
		name string
		prev driver.Version
		put  error
		get  func(context.Context) ([]byte, string, error)
		is   error // nil: applied; errOpen: the outcome is unknown
		why  string
	}{
		{"applied", "1", nil, found("x", "2", nil), nil, ""},
		{"precondition", "1", fmt.Errorf("put: %w", s3lect.ErrStoragePrecondition), nil, driver.ErrConflict, "another wrote"},
		{"gone", "1", s3lect.ErrStorageNotFound, nil, driver.ErrConflict, "what should have the ETag is not there"},
		{"no bucket", "", s3lect.ErrStorageNotFound, nil, errOpen, "the object was not expected to be there"},
		{"denied", "1", fmt.Errorf("put: %w", driver.ErrDenied), nil, driver.ErrDenied, "the storage knows"},
		{"broken", "1", broken, nil, errOpen, "it may have been written"},
		{"applied, ETag unknown", "1", nil, found("", "", broken), errOpen, "the election finds it by its nonce"},
		{"applied, and may not read", "1", nil, found("", "", driver.ErrDenied), errOpen, "the write was not refused"},
		{"applied, and gone", "1", nil, found("", "", s3lect.ErrStorageNotFound), errOpen, "it was there"},
		{"applied and overtaken", "1", nil, found("y", "3", nil), errOpen, "3 is another's version"},
		{"applied, without ETag", "1", nil, found("x", "", nil), errOpen, "the empty version means absent"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := s3lect.FromStorage(scripted{c.get, func(context.Context) error { return c.put }})
			v, err := s.CompareAndSwap(t.Context(), "k", c.prev, []byte("x"))
			open, refused := errors.Is(c.is, errOpen), errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied)
			switch {
			case c.is == nil && (err != nil || v != "2"), c.is != nil && err == nil:
				t.Errorf("version %q, error %v: %s", v, err, c.why)
			case open && refused, c.is != nil && !open && !errors.Is(err, c.is):
				t.Errorf("error %v, want %v: %s", err, c.is, c.why)
			}
		})
	}
}

var errOpen = errors.New("an error that leaves the outcome open")

func TestReadsOfStorage(t *testing.T) {
	answer := func(value, etag string, err error) (driver.Entry, error) {
		return s3lect.FromStorage(scripted{get: func(context.Context) ([]byte, string, error) {
			return []byte(value), etag, err
		}}).Read(context.Background(), "k")
	}
	if e, err := answer("", "", fmt.Errorf("get: %w", s3lect.ErrStorageNotFound)); err != nil || !e.Absent() || e.Version != "" {
		t.Errorf("not found: %+v, %v", e, err)
	}
	if e, err := answer("x", `"abc"`, nil); err != nil || string(e.Value) != "x" || e.Version != `"abc"` {
		t.Errorf("found: %+v, %v", e, err)
	}
	if e, err := answer("x", "", nil); err == nil {
		t.Errorf("an object without ETag is read as %+v, which looks absent", e)
	}
	if _, err := answer("", "", driver.ErrDenied); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("denied: %v", err)
	}
}

// A storage that ignores contexts must neither block an election nor accumulate calls.
func TestStorageThatIgnoresContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		s := s3lect.FromStorage(scripted{get: func(context.Context) ([]byte, string, error) {
			<-wake
			return []byte("x"), "1", nil
		}})
		began := 0
		for ; began < 1000; began++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := s.Read(ctx, "k")
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		if began == 0 || began > abandon.MaxAbandoned {
			t.Errorf("%d calls hang at once", began)
		}
		close(wake)
		synctest.Wait()
		if e, err := s.Read(t.Context(), "k"); err != nil || e.Version != "1" {
			t.Errorf("after it woke: %+v, %v", e, err)
		}
	})
}

func TestStoreAsStorage(t *testing.T) {
	ctx := t.Context()
	inner := memory.NewPolled()
	s := s3lect.ToStorage(inner)
	if _, _, err := s.Get(ctx, "k"); !errors.Is(err, s3lect.ErrStorageNotFound) {
		t.Errorf("of nothing: %v", err)
	}
	if err := s.PutIfMatch(ctx, "k", []byte("one"), "7"); !errors.Is(err, s3lect.ErrStoragePrecondition) {
		t.Errorf("with an ETag where nothing is: %v", err)
	}
	if err := s.PutIfMatch(ctx, "k", []byte("one"), ""); err != nil {
		t.Errorf("first: %v", err)
	}
	if err := s.PutIfMatch(ctx, "k", []byte("two"), ""); !errors.Is(err, s3lect.ErrStoragePrecondition) {
		t.Errorf("again: %v", err)
	}
	data, etag, err := s.Get(ctx, "k")
	if err != nil || string(data) != "one" {
		t.Errorf("got %q, %v", data, err)
	}
	next, err := s.(s3lect.ETagStorage).PutIfMatchETag(ctx, "k", []byte("two"), etag)
	if err != nil {
		t.Errorf("with its ETag: %v", err)
	}
	if err := s.PutIfMatch(ctx, "k", nil, next); err == nil {
		t.Error("an empty object would be a deletion")
	}
	inner.Delete("k")
	if err := s.PutIfMatch(ctx, "k", []byte("three"), ""); err != nil {
		t.Errorf("over a delete marker: %v", err)
	}
}

func TestNothingToWrap(t *testing.T) {
	if s := s3lect.FromStorage(nil); s != nil {
		t.Errorf("a store over nothing: %v", s)
	}
	if s := s3lect.ToStorage(nil); s != nil {
		t.Errorf("a storage over nothing: %v", s)
	}
}

// plain hides that a storage returns ETags.
type plain struct{ s3lect.Storage }

// operated is either kind of memory store.
type operated interface {
	driver.Store
	Delete(key string) driver.Version
	Purge(key string)
}

// over has every way of wrapping a store in this package.
var over = map[string]func(testing.TB) (operated, driver.Store){
	"storage": func(testing.TB) (operated, driver.Store) {
		s := memory.NewPolled()
		return s, s3lect.FromStorage(plain{s3lect.ToStorage(s)})
	},
	"storage that returns ETags": func(testing.TB) (operated, driver.Store) {
		s := memory.NewPolled()
		return s, s3lect.FromStorage(s3lect.ToStorage(s))
	},
	"legacy": func(t testing.TB) (operated, driver.Store) {
		s := memory.New()
		return s, mustLegacy(t, s)
	},
	"legacy, polled": func(t testing.TB) (operated, driver.Store) {
		s := memory.NewPolled()
		return s, mustLegacy(t, s)
	},
}

func mustLegacy(t testing.TB, s driver.Store) driver.Store {
	t.Helper()
	l, err := s3lect.Legacy(s, s3lect.LegacyConfig{})
	must(t, err)
	return l
}

func harness(t testing.TB, open func(testing.TB) (operated, driver.Store)) drivertest.Harness {
	inner, s := open(t)
	return drivertest.Harness{
		Store:  s,
		Delete: func(_ context.Context, key string) error { inner.Delete(key); return nil },
		Purge:  func(_ context.Context, key string) error { inner.Purge(key); return nil },
	}
}

func TestConformance(t *testing.T) {
	for name, open := range over {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t testing.TB) drivertest.Harness { return harness(t, open) })
		})
	}
}

func TestElection(t *testing.T) {
	for name, open := range over {
		t.Run(name, func(t *testing.T) {
			electiontest.RunInBubbles(t, func(t testing.TB) drivertest.Harness { return harness(t, open) })
		})
	}
}

func mustElection(t *testing.T, store driver.Store, id string) *tenure.Election {
	t.Helper()
	e, err := tenure.New(store, "k", tenure.Config{ID: id})
	must(t, err)
	return e
}

// turn leads for a moment, and returns the token.
func turn(t *testing.T, e *tenure.Election) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	term, err := e.Campaign(ctx)
	must(t, err)
	if err := term.Resign(ctx); err != nil {
		t.Error(err)
	}
	return term.Token()
}

// A storage of S3lect has no floor. After the object was deleted, the token of an elected candidate
// depends only on the terms that this candidate has seen, not on terms that other living members
// have seen.
func TestTokensOverAStorageAfterADeletion(t *testing.T) {
	bubble(t, func(t *testing.T, inner *memory.Polled) {
		store := s3lect.FromStorage(plain{s3lect.ToStorage(inner)})
		old := mustElection(t, store, "old")
		var highest uint64
		for range 3 {
			highest = turn(t, old)
		}
		inner.Purge("k")
		if token := turn(t, mustElection(t, store, "young")); token >= highest {
			t.Errorf("token %d after %d: the documentation is too careful", token, highest)
		}
		if token := turn(t, old); token <= highest {
			t.Errorf("token %d of a candidate that has seen %d", token, highest)
		}
	})
}

func TestLegacyConfigIsChecked(t *testing.T) {
	cases := []struct {
		name string
		cfg  s3lect.LegacyConfig
		ok   bool
		why  string
	}{
		{"zero", s3lect.LegacyConfig{}, true, "S3lect's own defaults"},
		{"all set", s3lect.LegacyConfig{LeaderTimeout: time.Minute, MaxSkew: 59 * time.Second}, true, ""},
		{"short timeout alone", s3lect.LegacyConfig{LeaderTimeout: time.Second}, true, "the skew follows"},
		{"no time at all", s3lect.LegacyConfig{LeaderTimeout: -1}, false, "nobody could lead"},
		{"timeout beyond all leases", s3lect.LegacyConfig{LeaderTimeout: time.Hour + 1}, false, "no record can say so"},
		{"skew below zero", s3lect.LegacyConfig{MaxSkew: -1}, false, "a distance"},
		{"skew of the timeout", s3lect.LegacyConfig{MaxSkew: 15 * time.Second}, false, "S3lect itself would not hold"},
	}
	for _, c := range cases {
		if s, err := s3lect.Legacy(memory.New(), c.cfg); (err == nil) != c.ok || (s != nil) != c.ok {
			t.Errorf("%s: %v, want ok %v: %s", c.name, err, c.ok, c.why)
		}
	}
	if s, err := s3lect.Legacy(nil, s3lect.LegacyConfig{}); err == nil || s != nil {
		t.Errorf("over no store: %v, %v", s, err)
	}
}

func TestLegacyHasTheAbilitiesOfItsStore(t *testing.T) {
	for name, inner := range map[string]driver.Store{
		"all": able.Store{}, "watches": memory.New(), "polled": memory.NewPolled(), "none": struct{ driver.Store }{memory.New()},
	} {
		t.Run(name, func(t *testing.T) {
			outer := mustLegacy(t, inner)
			got, want := able.Answers(t.Context(), outer), able.Answers(t.Context(), inner)
			if _, watches := want["Watcher"]; watches {
				want["Peers"] += "" // S3lect processes are not pushed to
			}
			findings, err := driver.AbilitiesOf(outer).Inspector.Inspect(t.Context(), time.Second)
			if err != nil || len(findings) == 0 || findings[len(findings)-1].Setting != "legacy" {
				t.Errorf("findings %v, %v", findings, err)
			}
			if inspector := driver.AbilitiesOf(inner).Inspector; inspector != nil {
				if own, err := inspector.Inspect(t.Context(), time.Second); err != nil || !slices.Equal(findings[:len(findings)-1], own) {
					t.Errorf("findings %v, want also %v", findings, own)
				}
			}
			delete(got, "Inspector")
			delete(want, "Inspector")
			if !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

func TestPushesAreTranslated(t *testing.T) {
	inner := memory.New()
	outer := mustLegacy(t, inner)
	var seen []string
	stop, err := driver.AbilitiesOf(outer).Watcher.Watch(t.Context(), "k", func(e driver.Entry) { seen = append(seen, string(e.Value)) })
	must(t, err)
	defer stop()
	inner.Put("k", []byte(`{"leaderID":"server-001","leaderAddr":"","lastUpdated":"2024-10-27T10:30:45Z"}`))
	inner.Put("k", []byte("bytes of somebody else"))
	inner.Delete("k")
	if len(seen) != 3 || !strings.Contains(seen[0], `"incarnation":"s3lect:`) || seen[1] != "bytes of somebody else" || seen[2] != "" {
		t.Errorf("pushed %q", seen)
	}
}

// A leader of S3lect has its own name and cannot be asked to hand over. Following it causes no
// alarm.
func TestFollowingAnS3lectLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.NewPolled()
		var alarms []tenure.Event
		e, err := tenure.New(mustLegacy(t, inner), "k", tenure.Config{
			ID: "new", OnEvent: func(e tenure.Event) {
				if e.Kind == tenure.EventAlarm {
					alarms = append(alarms, e)
				}
			},
		})
		must(t, err)
		inner.Put("k", []byte(`{"leaderID":"server-001","leaderAddr":"10.0.1.42:8443","lastUpdated":"2024-10-27T10:30:45Z"}`))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s, err := e.Wait(ctx, func(s tenure.Status) bool { return s.Known })
		if err != nil || s.Leader.ID != "server-001" || s.Leader.Address != "10.0.1.42:8443" {
			t.Errorf("leader %+v, %v", s.Leader, err)
		}
		before, _ := inner.Read(ctx, "k")
		if err := e.HandOver(ctx, ""); err == nil || !strings.Contains(err.Error(), "S3lect") {
			t.Errorf("hand-over: %v", err)
		}
		if after, _ := inner.Read(ctx, "k"); after.Version != before.Version {
			t.Errorf("its lockfile was changed to %s", after.Value)
		}
		began := time.Now()
		term, err := e.Campaign(ctx)
		must(t, err)
		if waited := time.Since(began); waited < 15*time.Second || waited > 40*time.Second || term.Token() < 2 {
			t.Errorf("token %d after %v", term.Token(), waited)
		}
		if err := term.Resign(ctx); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(alarms) > 0 {
			t.Errorf("alarm: %v", alarms[0].Cause)
		}
	})
}
