package s3object

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// These functions show how servers interpret If-Match.
var (
	quotedOnly = func(header, etag string) bool { return header == `"`+etag+`"` }
	bareOnly   = func(header, etag string) bool { return header == etag }
	// bareIgnored ignores a header that it does not understand.
	bareIgnored = func(header, etag string) bool { return !strings.HasPrefix(header, `"`) || quotedOnly(header, etag) }
)

func matching(match func(header, etag string) bool) func(*stub) {
	return func(s *stub) { s.match = match }
}

// bareIgnoring is a server that writes without a condition if an ETag has no quotes.
func bareIgnoring(s *stub) {
	s.match = bareIgnored
	s.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if h := r.Header.Get("If-Match"); h != "" && !strings.HasPrefix(h, `"`) {
			r.Header.Del("If-Match")
		}
		return false
	}
}

// retry acts as elections do after a conflict: it reads, and tries again if the version is the
// expected one.
func retry(t *testing.T, s *stub, store *Store, key string, prev driver.Version, value string) (conflicts int, v driver.Version) {
	t.Helper()
	for range 4 {
		v, err := store.CompareAndSwap(bounded(t, patience), key, prev, []byte(value))
		if err == nil {
			return conflicts, v
		}
		if !errors.Is(err, driver.ErrConflict) {
			t.Fatal(err)
		}
		conflicts++
		if e := s.read(t, store, key); e.Version != prev {
			t.Fatalf("the version is %q", e.Version)
		}
	}
	t.Fatalf("%d conflicts", conflicts)
	return 0, ""
}

func TestETagFormIsDetected(t *testing.T) {
	for _, c := range []struct {
		name  string
		match func(header, etag string) bool
		opts  []Option
		want  int // conflicts at first
		bare  bool
	}{
		{"as the standard says", quotedOnly, nil, 0, false},
		{"bare", bareOnly, nil, 1, true},
		{"bare from the start", bareOnly, []Option{WithUnquotedETags()}, 0, true},
		{"wrongly set", quotedOnly, []Option{WithUnquotedETags()}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startStub(t, matching(c.match))
			store := s.open(t, c.opts...)
			v := s.swap(t, store, "key", "", "first")
			before := s.count("")
			conflicts, v := retry(t, s, store, "key", v, "second")
			if conflicts != c.want || store.form.isBare() != c.bare {
				t.Errorf("%d conflicts, bare %t", conflicts, store.form.isBare())
			}
			// A refused write, a read, and a trial: an object is created, and not replaced.
			if n := s.count("") - before; n != 1+4*c.want {
				t.Errorf("%d requests", n)
			}
			s.swap(t, store, "key", v, "third")
			other := s.swap(t, store, "other", "", "first")
			s.swap(t, store, "other", other, "second")
		})
	}
}

// TestTrueConflictKeepsTheETagForm: a conflict that a read explains does not change the form.
// Neither does a conflict without a later read, nor an earlier read.
func TestTrueConflictKeepsTheETagForm(t *testing.T) {
	s := startStub(t, matching(quotedOnly))
	store := s.open(t)
	old := s.set("key", "old")
	s.set("key", "new")
	requests := s.count("")
	for range 5 {
		if _, err := store.CompareAndSwap(bounded(t, patience), "key", old, []byte("x")); !errors.Is(err, driver.ErrConflict) {
			t.Fatal(err)
		}
		s.read(t, store, "key")
		s.read(t, store, "key")
	}
	if n := s.count("") - requests; n != 15 || store.form.isBare() || len(store.form.doubts) != 0 {
		t.Errorf("%d requests, bare %t, doubts %v", n, store.form.isBare(), store.form.doubts)
	}
}

// TestEarlierReadIsNoEvidence: a read in flight correctly shows the old version, while the swap
// from that version is refused.
func TestEarlierReadIsNoEvidence(t *testing.T) {
	var store *Store
	var once sync.Once
	s := startStub(t, matching(quotedOnly), answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		s.get(w, r)
		once.Do(func() {
			s.set("key", "new")
			_, err := store.CompareAndSwap(r.Context(), "key", driver.Version(etagOf("old")), []byte("x"))
			if !errors.Is(err, driver.ErrConflict) {
				t.Error(err)
			}
		})
		return true
	}))
	store = s.open(t)
	old := s.set("key", "old")
	if e := s.read(t, store, "key"); e.Version != old {
		t.Fatalf("read %+v", e)
	}
	if n := s.count("PUT"); n != 1 || store.form.isBare() {
		t.Errorf("%d writes, bare %t", n, store.form.isBare())
	}
}

// TestWorkingETagFormIsKept: once a swap was applied, refusals without a reason do not change the
// form.
func TestWorkingETagFormIsKept(t *testing.T) {
	moody := false
	s := startStub(t, func(s *stub) {
		s.match = func(header, etag string) bool { return !moody && quotedOnly(header, etag) }
	})
	store := s.open(t)
	v := s.swap(t, store, "key", "", "first")
	v = s.swap(t, store, "key", v, "second")
	moody = true
	for range 3 {
		if _, err := store.CompareAndSwap(bounded(t, patience), "key", v, []byte("x")); !errors.Is(err, driver.ErrConflict) {
			t.Fatal(err)
		}
		s.read(t, store, "key")
	}
	if store.form.isBare() || s.count("PUT") != 5 {
		t.Errorf("bare %t after %d writes", store.form.isBare(), s.count("PUT"))
	}
}

// TestIgnoredETagFormIsNeverUsed: the server refuses quoted ETags without a reason, and ignores
// bare ones as a condition.
func TestIgnoredETagFormIsNeverUsed(t *testing.T) {
	s := startStub(t, bareIgnoring, func(s *stub) {
		s.match = func(header, etag string) bool { return false }
	})
	store := s.open(t)
	v := s.set("key", "old")
	for range 3 {
		if _, err := store.CompareAndSwap(bounded(t, patience), "key", v, []byte("x")); !errors.Is(err, driver.ErrConflict) {
			t.Fatalf("from the old version: %v", err)
		}
		if e := s.read(t, store, "key"); string(e.Value) != "old" {
			t.Fatalf("the object holds %q", e.Value)
		}
	}
	if store.form.isBare() {
		t.Error("ETags are sent in a form that the server ignores")
	}
	if n := s.count("PUT"); n != 5 { // three swaps, and a trial on an object that it creates
		t.Errorf("%d writes", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.objects) != 2 {
		t.Errorf("more than the cell and the trial's object: %v", s.objects)
	}
}

// TestSwapIsAtomicInEveryETagForm lets many clients count up on servers of every kind, which also
// refuse every third swap without a reason. No version may be replaced twice, in any form.
func TestSwapIsAtomicInEveryETagForm(t *testing.T) {
	for name, server := range map[string]func(*stub){
		"quoted": matching(quotedOnly), "bare": matching(bareOnly), "both": func(*stub) {}, "bare ignored": bareIgnoring,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			rng := rand.New(rand.NewPCG(1, 2))
			s := startStub(t, server, func(s *stub) {
				match := s.match
				s.match = func(header, etag string) bool {
					mu.Lock()
					defer mu.Unlock()
					return rng.IntN(3) > 0 && match(header, etag)
				}
			})
			countUp(t, s, name != "bare ignored")
		})
	}
}

// countUp lets every second client begin without quotes, if mixed is true.
func countUp(t *testing.T, s *stub, mixed bool) {
	s.set("key", "start")
	var mu sync.Mutex
	replaced := map[driver.Version]int{}
	var all sync.WaitGroup
	for writer := range 8 {
		var opts []Option
		if mixed && writer%2 == 1 {
			opts = append(opts, WithUnquotedETags())
		}
		store := s.open(t, opts...)
		all.Go(func() {
			for i := range 20 {
				e, err := store.Read(t.Context(), "key")
				if err != nil {
					t.Error(err)
					return
				}
				_, err = store.CompareAndSwap(t.Context(), "key", e.Version, fmt.Appendf(nil, "%d %d", writer, i))
				if err == nil {
					mu.Lock()
					replaced[e.Version]++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	for v, n := range replaced {
		if n > 1 {
			t.Errorf("version %s was replaced %d times", v, n)
		}
	}
	if len(replaced) < 10 {
		t.Errorf("only %d swaps were applied", len(replaced))
	}
}

func TestVersions(t *testing.T) {
	for etag, want := range map[string]driver.Version{`"abc"`: "abc", "abc": "abc", `W/"abc"`: "abc", `"abc-2"`: "abc-2", `""`: ""} {
		if got := version(&etag); got != want {
			t.Errorf("ETag %s is version %q", etag, got)
		}
	}
	if version(nil) != "" {
		t.Error("no ETag is a version")
	}
}

// tearing answers reads with the ETag of the newest value and the content of an older one, while
// stale is set.
func tearing(stale *atomic.Pointer[string]) func(*stub) {
	return answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		old := stale.Load()
		if r.Method != http.MethodGet || old == nil {
			return false
		}
		w.Header().Set("ETag", `"`+s.etag(s.value(strings.TrimPrefix(r.URL.Path, "/bucket/")))+`"`)
		_, _ = w.Write([]byte(*old))
		return true
	})
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

// A server may refuse each If-Match for an object that does not exist, and still ignore unquoted
// ETags for one that exists. The store must not conclude that the server wants unquoted ETags, even
// if a cache shows an old state just after a refused swap.
func TestTrialUsesAnExistingObject(t *testing.T) {
	var stale atomic.Pointer[string]
	server := startStub(t, matching(bareIgnored), answering(func(_ *stub, w http.ResponseWriter, r *http.Request) bool {
		v := stale.Load()
		if v == nil || r.Method != http.MethodGet {
			return false
		}
		w.Header().Set("ETag", `"`+etagOf(*v)+`"`)
		fmt.Fprint(w, *v)
		return true
	}))
	store := server.open(t)
	old := "one"
	v1 := server.set("k", old)
	server.set("k", "two") // another client replaces it
	if _, err := store.CompareAndSwap(bounded(t, patience), "k", v1, []byte("three")); !errors.Is(err, driver.ErrConflict) {
		t.Fatal(err)
	}
	stale.Store(&old)
	server.read(t, store, "k") // a cache answers
	stale.Store(nil)
	if _, err := store.CompareAndSwap(bounded(t, patience), "k", v1, []byte("four")); err == nil {
		t.Errorf("a swap from a version that is long gone was applied: %q", server.value("k"))
	}
}
