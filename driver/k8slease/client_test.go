package k8slease

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tenure-go/tenure/driver"
)

// serving returns a store whose requests are answered by a function. It counts them.
func serving(t *testing.T, answer func(n int64, w http.ResponseWriter, r *http.Request)) (*Store, *atomic.Int64) {
	t.Helper()
	requests := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(requests.Add(1), w, r) }))
	t.Cleanup(server.Close)
	s, err := New(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, requests
}

// status answers with an error of an API server.
func status(w http.ResponseWriter, code int, reason, kind string) {
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","code":%d,"reason":%q,"message":"said","details":{"kind":%q}}`, code, reason, kind)
}

// TestAnswers: only a certain refusal is a conflict or a denial, and no write is sent twice.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		what         string
		prev         driver.Version
		code         int
		reason, kind string
		want         error // nil: the outcome is open
		why          string
	}{
		{"another version", "5@u", 409, "Conflict", "leases", driver.ErrConflict, "the server compared"},
		{"a Lease is there", "", 409, "AlreadyExists", "leases", driver.ErrConflict, "the server compared"},
		{"the Lease is gone", "5@u", 404, "NotFound", "leases", driver.ErrConflict, "it no longer has the version"},
		{"no namespace", "", 404, "NotFound", "namespaces", nil, "waiting for another version does not help"},
		{"no right", "5@u", 403, "Forbidden", "leases", driver.ErrDenied, "the server says so"},
		{"expired credentials", "5@u", 401, "Unauthorized", "", driver.ErrDenied, "the server says so"},
		{"a proxy forbids", "5@u", 403, "", "", nil, "another server answered, perhaps after the first"},
		{"a conflict of another kind", "5@u", 409, "Other", "leases", nil, "its meaning is not known"},
		{"server error", "5@u", 500, "InternalError", "", nil, "etcd may have applied it"},
		{"time-out", "5@u", 504, "Timeout", "", nil, "etcd may have applied it"},
	} {
		s, requests := serving(t, func(_ int64, w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet:
				_, _ = fmt.Fprint(w, `{"metadata":{"name":"a","uid":"u","resourceVersion":"5"},"spec":{}}`)
			case c.reason == "":
				http.Error(w, "no", c.code)
			default:
				status(w, c.code, c.reason, c.kind)
			}
		})
		_, err := s.CompareAndSwap(t.Context(), "a", c.prev, []byte("x"))
		for _, certain := range []error{driver.ErrConflict, driver.ErrDenied} {
			if errors.Is(err, certain) != errors.Is(c.want, certain) {
				t.Errorf("%s: got %v, want %v, because %s", c.what, err, c.want, c.why)
			}
		}
		most := int64(1)
		if c.prev != "" {
			most++ // the read of the version
		}
		if err == nil || requests.Load() > most {
			t.Errorf("%s: %d requests, %v", c.what, requests.Load(), err)
		}
	}
}

// TestLostAnswer: a write whose connection breaks is sent once, since it may have been applied.
func TestLostAnswer(t *testing.T) {
	s, requests := serving(t, func(int64, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := s.CompareAndSwap(t.Context(), "a", "", []byte("x"))
	if err == nil || errors.Is(err, driver.ErrConflict) || requests.Load() != 1 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
}

// TestBusyServer: after 429 the server has not begun the request. It is sent again when the server
// says, but not after the attempt.
func TestBusyServer(t *testing.T) {
	busy := func(after string) func(int64, http.ResponseWriter, *http.Request) {
		return func(n int64, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				w.Header().Set("Retry-After", after)
				status(w, http.StatusTooManyRequests, "TooManyRequests", "")
				return
			}
			_, _ = fmt.Fprint(w, `{"metadata":{"name":"a","uid":"u","resourceVersion":"5"},"spec":{}}`)
		}
	}
	s, requests := serving(t, busy("0"))
	if _, err := s.Read(t.Context(), "a"); err != nil || requests.Load() != 2 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
	s, requests = serving(t, busy("3600"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Read(ctx, "a"); err == nil || !strings.Contains(err.Error(), "429") || requests.Load() != 1 || ctx.Err() != nil {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
}

// TestChangedByWebhook: a Lease that is not as it was written is no success.
func TestChangedByWebhook(t *testing.T) {
	s, _ := serving(t, func(_ int64, w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"metadata":{"name":"a","uid":"u","resourceVersion":"5"},"spec":{"holderIdentity":"webhook"}}`)
	})
	_, err := s.CompareAndSwap(t.Context(), "a", "", []byte("x"))
	if err == nil || errors.Is(err, driver.ErrConflict) || !strings.Contains(err.Error(), "webhook") {
		t.Errorf("got %v", err)
	}
}

// TestForeignLeaderIsNotChanged: a request to a foreign leader is not sent.
func TestForeignLeaderIsNotChanged(t *testing.T) {
	s, requests := serving(t, func(int64, http.ResponseWriter, *http.Request) {})
	value := spec{Holder: "pod-a", Seconds: 15}.foreign(nil)
	if _, err := s.CompareAndSwap(t.Context(), "a", "5@u", value); !errors.Is(err, errForeign) || requests.Load() != 0 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
}
