// Package objecttest has the tests that stores in the object storage of clouds share. They run on
// fakes within the process, over networks of pipes.
package objecttest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/object"
	"github.com/tenure-go/tenure/internal/test/objectfake"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Kit says how to test a store.
type Kit struct {
	// Bucket is the place on the fake.
	Bucket string
	// Write is the method of a write.
	Write string
	// Rights are those of a candidate that also lists.
	Rights []string
	// Hidden is in no error.
	Hidden string
	// Start starts a fake for the length of a test, which ignores the conditions of this name, and
	// works in a bubble if it was started there.
	Start func(t testing.TB, ignores string) Site
}

// Site is a running fake.
type Site struct {
	*objectfake.Server
	// Open returns a store of a user.
	Open func(user, prefix string) Store
	// Trust makes a store check nothing, so that a test sees only the requests of its own calls.
	Trust func(Store)
}

// Store is a store under test.
type Store interface {
	driver.Store
	driver.Bounded
	driver.Inspector
}

// Lost gives no answer.
func Lost(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// Redirect redirects to another place on the server.
func Redirect(w http.ResponseWriter) {
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(http.StatusTemporaryRedirect)
}

// Half returns an answer with this header that breaks off.
func Half(name, value string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set(name, value)
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("value"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// checked starts a site with a store that need not check its server.
func (k Kit) checked(t testing.TB, intercept func(http.ResponseWriter, *http.Request, http.HandlerFunc) bool) (Site, Store) {
	s := k.Start(t, "")
	s.Intercept = intercept
	store := s.Open("any", "")
	s.Trust(store)
	return s, store
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Conformance runs the conformance kit.
func (k Kit) Conformance(t *testing.T) {
	drivertest.RunInBubbles(t, func(t testing.TB) drivertest.Harness {
		s := k.Start(t, "")
		s.Allow("candidate", k.Rights...)
		s.Allow("stranger")
		remove := func(_ context.Context, key string) error { s.Delete(k.Bucket, key); return nil }
		return drivertest.Harness{
			Store: s.Open("candidate", ""), Peer: s.Open("candidate", ""), Denied: s.Open("stranger", ""),
			Delete: remove, Purge: remove, FloorTick: time.Second,
			Recreate: func(context.Context) error { s.Recreate(k.Bucket); return nil },
		}
	})
}

// Records checks that an upload names its type, and that no cache may keep it.
func (k Kit) Records(t *testing.T) {
	s := k.Start(t, "")
	store := s.Open("any", "/a/b/")
	_, err := store.CompareAndSwap(wait.Context(t), "c/d ü", "", []byte("value"))
	must(t, err)
	o := s.Object(k.Bucket, "a/b/c/d ü")
	if o.Value != "value" || o.Metadata["cacheControl"] != "no-store" || o.Metadata["contentType"] != "application/json" {
		t.Errorf("the object is %+v", o)
	}
	keys, err := store.Keys(wait.Context(t))
	if err != nil || !slices.Equal(keys, []string{"c/d ü"}) {
		t.Errorf("the keys are %q, %v", keys, err)
	}
}

// Keys has all pages: the fake gives two names in a page.
func (k Kit) Keys(t *testing.T) {
	s := k.Start(t, "")
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprint("k", i))
		s.Set(k.Bucket, want[i], "value")
	}
	s.Set(k.Bucket, "empty", "")
	s.Set(k.Bucket, object.ProbePrefix+"x", "value")
	keys, err := s.Open("any", "").Keys(wait.Context(t))
	if err != nil || !slices.Equal(keys, want) {
		t.Errorf("the keys are %q, %v", keys, err)
	}
}

// Outcome is an answer to a write.
type Outcome struct {
	why, says string
	answer    func(http.ResponseWriter)
	applied   bool
	want      error
}

// Applied is an answer to a write that was applied. The outcome must be open. The error has the
// text.
func Applied(why, says string, answer func(http.ResponseWriter)) Outcome {
	return Outcome{why, says, answer, true, nil}
}

// Unapplied is an answer to a write that was not applied. The error must wrap the other one; nil:
// the outcome must be open. It has the text.
func Unapplied(why string, want error, says string, answer func(http.ResponseWriter)) Outcome {
	return Outcome{why, says, answer, false, want}
}

// Outcomes checks that each write is one request, whatever the answer is.
func (k Kit) Outcomes(t *testing.T, all ...Outcome) {
	for _, c := range all {
		t.Run(c.why, func(t *testing.T) {
			s, store := k.checked(t, func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool {
				if r.Method != k.Write {
					return false
				}
				if c.applied {
					serve(httptest.NewRecorder(), r)
				}
				c.answer(w)
				return true
			})
			_, err := store.Read(wait.Context(t), "key") // opens a connection
			must(t, err)
			_, err = store.CompareAndSwap(wait.Context(t), "key", "", []byte("value"))
			if n := s.Requests(k.Write); err == nil || n != 1 {
				t.Fatalf("%d requests, error %v", n, err)
			}
			if o := s.Object(k.Bucket, "key"); (o.Value != "") != c.applied {
				t.Errorf("the object is %+v", o)
			}
			for _, sentinel := range []error{driver.ErrConflict, driver.ErrDenied, driver.ErrUnfit} {
				if errors.Is(err, sentinel) != errors.Is(c.want, sentinel) {
					t.Errorf("want %v: %v", c.want, err)
				}
			}
			k.says(t, err, c.says)
		})
	}
}

func (k Kit) says(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), k.Hidden) || strings.Contains(err.Error(), "\n") {
		t.Errorf("want %q, on one line and without %q, in: %v", want, k.Hidden, err)
	}
}

// Reads checks that a read that is not known is no absence. The answers are by the text of the
// error.
func (k Kit) Reads(t *testing.T, answers map[string]func(http.ResponseWriter)) {
	for says, answer := range answers {
		_, store := k.checked(t, func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) bool {
			answer(w)
			return true
		})
		_, err := store.Read(wait.Context(t), "key")
		k.says(t, err, says)
	}
}

// Restored checks that a deleted object that comes back has another version, and that a write from
// the one before is refused.
func (k Kit) Restored(t *testing.T) {
	s := k.Start(t, "")
	store := s.Open("any", "")
	before, err := store.CompareAndSwap(wait.Context(t), "key", "", []byte("value"))
	must(t, err)
	s.Delete(k.Bucket, "key")
	s.Set(k.Bucket, "key", "value")
	e, err := store.Read(wait.Context(t), "key")
	if err != nil || e.Version == before || string(e.Value) != "value" {
		t.Errorf("read %+v, %v", e, err)
	}
	if _, err := store.CompareAndSwap(wait.Context(t), "key", before, []byte("late")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a late write: %v", err)
	}
}

// Lack is a user who lacks rights.
type Lack struct {
	why         string
	have        []string
	fails, says string
}

// Without is a user with the other rights. The calls that fail are some of read, absent, insert,
// update, list and rights, separated by spaces. Their errors have the text.
func Without(why string, have []string, fails, says string) Lack { return Lack{why, have, fails, says} }

// Lacks checks that a call without its right is denied, and that the error names the right.
func (k Kit) Lacks(t *testing.T, all ...Lack) {
	for _, c := range all {
		t.Run("without "+c.why, func(t *testing.T) {
			s, store := k.checked(t, nil)
			s.Set(k.Bucket, object.ConditionsName, "another's check")
			v := s.Set(k.Bucket, "held", "value")
			s.Allow("any", c.have...)
			ctx := wait.Context(t)
			_, read := store.Read(ctx, "held")
			_, absent := store.Read(ctx, "absent")
			_, insert := store.CompareAndSwap(ctx, "new", "", []byte("value"))
			_, update := store.CompareAndSwap(ctx, "held", driver.Version(v), []byte("value"))
			_, list := store.Keys(ctx)
			calls := map[string]error{"read": read, "absent": absent, "insert": insert, "update": update, "list": list, "rights": store.CheckRights(ctx, "held")}
			for call, err := range calls {
				fails := slices.Contains(strings.Fields(c.fails), call)
				if errors.Is(err, driver.ErrDenied) != fails || err != nil && !fails || fails && !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}

// Careless checks that a server that ignores conditions is never written to. The cell keeps the
// value that it holds, or stays absent.
func (k Kit) Careless(t *testing.T, conditions map[string]string) {
	for ignored, named := range conditions {
		s := k.Start(t, ignored)
		held := s.Set(k.Bucket, "held", "precious")
		store := s.Open("any", "")
		ctx := wait.Context(t)
		for range 2 {
			_, created := store.CompareAndSwap(ctx, "absent", "", []byte("mine"))
			_, swapped := store.CompareAndSwap(ctx, "held", driver.Version(held), []byte("mine"))
			for call, err := range map[string]error{"create": created, "swap": swapped, "check": store.CheckRights(ctx, "held")} {
				if !errors.Is(err, driver.ErrUnfit) || errors.Is(err, driver.ErrConflict) || !strings.Contains(err.Error(), named) {
					t.Errorf("ignores %s: %s: %v", ignored, call, err)
				}
			}
		}
		if held, absent := s.Object(k.Bucket, "held").Value, s.Object(k.Bucket, "absent").Value; held != "precious" || absent != "" {
			t.Errorf("ignores %s: the cells hold %q and %q", ignored, held, absent)
		}
		found, err := store.Inspect(ctx, time.Minute)
		if err != nil || !slices.ContainsFunc(found, func(f driver.Finding) bool { return f.Severity == driver.Unsafe }) {
			t.Errorf("ignores %s: Inspect finds %v, %v", ignored, found, err)
		}
	}
}

// CheckKey checks the rules that all stores share, and keys that this one refuses.
func (k Kit) CheckKey(t *testing.T, refused ...string) {
	store := k.Start(t, "").Open("any", "four")
	for _, key := range []string{"billing", "team/billing", "Zürich ☕", "a.b", "..a", ".tenure", strings.Repeat("k", 1019), ".tenure-probe-x/y"} {
		if err := store.CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range append(refused, "", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "../a", "a\nb", "a\x00", "a\xff", strings.Repeat("k", 1020),
		strings.Repeat("k", 980)+"/k", ".tenure-probe-x", "a/.tenure-probe-x") {
		if err := store.CheckKey(key); err == nil {
			t.Errorf("%q passes", key)
		}
		if _, err := store.CompareAndSwap(t.Context(), key, "", nil); err == nil {
			t.Errorf("%q is written", key)
		}
	}
}
