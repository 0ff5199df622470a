package s3object

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// tearing answers reads with the ETag of the newest value and the content of an older one, while
// stale is set.
func tearing(stale *atomic.Pointer[string]) func(*stub) {
	return func(s *stub) {
		s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
			old := stale.Load()
			if r.Method != http.MethodGet || old == nil {
				return false
			}
			w.Header().Set("ETag", `"`+s.etag(s.value(strings.TrimPrefix(r.URL.Path, "/bucket/")))+`"`)
			_, _ = w.Write([]byte(*old))
			return true
		}
	}
}

// If a follower took the old content for the present state, it would replace the new content, which
// it has never seen.
func TestTornReadIsRefused(t *testing.T) {
	var stale atomic.Pointer[string]
	s := startStub(t, tearing(&stale))
	store := s.open(t)
	s.set("key", "first")
	s.read(t, store, "key") // the read shows that ETags are checksums here
	s.set("key", "second")
	// If the same content came for a while, it would be believed.
	for _, old := range []string{"first", "zeroth", "first"} {
		stale.Store(&old)
		if e, err := store.Read(bounded(t, patience), "key"); !errors.Is(err, errTorn) {
			t.Errorf("read %+v, %v", e, err)
		}
	}
	stale.Store(nil)
	if e := s.read(t, store, "key"); string(e.Value) != "second" {
		t.Errorf("read %+v", e)
	}
	if e := s.read(t, store, "missing"); !e.Absent() {
		t.Errorf("read %+v", e)
	}
}

func TestOwnWriteShowsThatETagsAreChecksums(t *testing.T) {
	var stale atomic.Pointer[string]
	s := startStub(t, tearing(&stale))
	store := s.open(t)
	s.swap(t, store, "key", "", "first")
	other := "other"
	stale.Store(&other)
	if e, err := store.Read(bounded(t, patience), "key"); !errors.Is(err, errTorn) {
		t.Errorf("read %+v, %v", e, err)
	}
}

// salting is a server whose ETags can stop being checksums, as when a bucket's encryption is
// changed.
func salting(on *atomic.Bool) func(*stub) {
	return func(s *stub) {
		s.etag = func(value string) string {
			if on.Load() && !strings.HasPrefix(value, "old") {
				return etagOf("salt" + value)
			}
			return etagOf(value)
		}
	}
}

// readable returns how many reads were refused before one succeeded.
func readable(t *testing.T, store *Store, key string) int {
	t.Helper()
	began := time.Now()
	for n := 0; ; n++ {
		_, err := store.Read(bounded(t, patience), key)
		if err == nil {
			return n
		}
		if !errors.Is(err, errTorn) || time.Since(began) > patience {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		time.Sleep(steady / 4)
	}
}

func TestETagsThatStopBeingChecksums(t *testing.T) { synctest.Test(t, noSumsAnyMore) }

func noSumsAnyMore(t *testing.T) {
	var on atomic.Bool
	s := startStub(t, salting(&on))
	store := s.open(t)
	s.set("idle", "old")
	s.read(t, store, "idle")
	on.Store(true)
	s.set("key", "first")
	if n := readable(t, store, "key"); n == 0 {
		t.Error("the first read that does not fit is believed")
	}
	s.read(t, store, "idle") // a checksum still, which proves nothing about the other key
	for range 3 {
		s.set("key", "second")
		if n := readable(t, store, "key"); n > 0 {
			t.Errorf("%d reads are refused again", n)
		}
		s.read(t, store, "idle")
	}
}

func TestETagsThatNeverWereChecksums(t *testing.T) {
	var on atomic.Bool
	on.Store(true)
	s := startStub(t, salting(&on))
	store := s.open(t)
	s.swap(t, store, "key", "", "first")
	s.read(t, store, "key")
}
