package s3lect_test

import (
	"context"
	"errors"
	"fmt"
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
