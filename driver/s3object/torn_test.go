package s3object

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tearing answers reads with the ETag of the newest value and the content of another, while it is asked to.
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

// A follower that took the old content for the present state would replace the new one, which it never saw.
func TestATornReadIsNoRead(t *testing.T) {
	var stale atomic.Pointer[string]
	s := startStub(t, tearing(&stale))
	store := s.open(t)
	s.set("key", "first")
	s.read(t, store, "key") // which shows that ETags are sums here
	s.set("key", "second")
	first := "first"
	stale.Store(&first)
	for range 3 {
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

func TestAnOwnWriteShowsThatETagsAreSums(t *testing.T) {
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

// ETags may be anything, and may stop being sums when the bucket's encryption is changed.
func TestETagsThatAreNoSums(t *testing.T) {
	var salt atomic.Pointer[string]
	s := startStub(t, func(s *stub) {
		s.etag = func(value string) string {
			if salt := salt.Load(); salt != nil {
				return etagOf(value + *salt)
			}
			return etagOf(value)
		}
	})
	some := "salt"
	salt.Store(&some)
	store := s.open(t)
	s.set("key", "value")
	s.read(t, store, "key")
	salt.Store(nil)
	s.read(t, store, "key")
	salt.Store(&some)
	began := time.Now()
	for {
		_, err := store.Read(bounded(t, patience), "key")
		took := time.Since(began)
		switch {
		case err == nil && took < steady:
			t.Fatalf("believed after %v", took)
		case err == nil:
			s.read(t, store, "another")
			return
		case !errors.Is(err, errTorn) || took > patience:
			t.Fatalf("after %v: %v", took, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
