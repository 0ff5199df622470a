package k8slease

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/certificates"
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

// TestWriteAfterBusyServer: a proxy may answer 429 for a write that the server has applied. The
// refusal of the second delivery then says nothing certain. A success does.
func TestWriteAfterBusyServer(t *testing.T) {
	for _, c := range []struct {
		code         int
		reason, kind string
	}{
		{409, "Conflict", "leases"}, {409, "AlreadyExists", "leases"}, {404, "NotFound", "leases"}, {403, "Forbidden", "leases"},
		{401, "Unauthorized", ""},
	} {
		writes := 0
		s, _ := serving(t, func(_ int64, w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				_, _ = fmt.Fprint(w, `{"metadata":{"name":"a","uid":"u","resourceVersion":"5"},"spec":{}}`)
				return
			}
			if writes++; writes == 1 {
				w.Header().Set("Retry-After", "0")
				http.Error(w, "Too many requests", http.StatusTooManyRequests)
				return
			}
			status(w, c.code, c.reason, c.kind)
		})
		_, err := s.CompareAndSwap(t.Context(), "a", "5@u", []byte("x"))
		if writes != 2 || err == nil || errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied) {
			t.Errorf("%d %s: %d writes, %v", c.code, c.reason, writes, err)
		}
	}
}

// TestNoDate: without the time of the API server, a floor may be below an earlier term. So no state
// is read. A write needs no floor.
func TestNoDate(t *testing.T) {
	for what, date := range map[string][]string{
		"no date": nil, "not a date": {"yesterday"}, "a clock that is not set": {"Thu, 01 Jan 1970 00:00:00 GMT"},
		"a time that no floor may have": {"Fri, 31 Dec 9999 23:59:59 GMT"},
	} {
		s, _ := serving(t, func(_ int64, w http.ResponseWriter, r *http.Request) {
			w.Header()["Date"] = date
			if r.Method != http.MethodGet {
				_, _ = io.Copy(w, r.Body)
				return
			}
			_, _ = fmt.Fprint(w, `{"metadata":{"name":"a","uid":"u","resourceVersion":"5"},"spec":{}}`)
		})
		_, err := s.Read(t.Context(), "a")
		_, keysErr := s.Keys(t.Context())
		stop, watchErr := s.Watch(t.Context(), "a", func(driver.Entry) {})
		for _, err := range []error{err, keysErr, watchErr} {
			if err == nil || !strings.Contains(err.Error(), "Date") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if stop != nil {
			stop()
		}
	}
}

// TestCredentials: a refusal names the setting that is at fault, and the remedy.
func TestCredentials(t *testing.T) {
	_, renew := certificates.Renewed(t)
	old, key := renew("old", -time.Minute)
	early, earlyKey := renew("early", time.Hour, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, reason string
		code         int
		change       func(*rest.Config)
		want         []string
	}{
		{"a token", "Unauthorized", 401, func(c *rest.Config) { c.BearerToken = "s3cret" }, []string{"renew the token of the configuration"}},
		{"a token file", "Unauthorized", 401, func(c *rest.Config) { c.BearerTokenFile = file }, []string{"renew the token in " + file}},
		{"an expired certificate", "Unauthorized", 401, func(c *rest.Config) { c.CertFile, c.KeyFile = old, key },
			[]string{"renew the client certificate in " + old, "which expired at 20"}},
		{"an early certificate", "Unauthorized", 401, func(c *rest.Config) { c.CertFile, c.KeyFile = early, earlyKey },
			[]string{"client certificate in " + early, "is not valid before 20"}},
		{"a password", "Unauthorized", 401, func(c *rest.Config) { c.Username, c.Password = "me", "s3cret" }, []string{"the password of user me"}},
		{"a plug-in", "Unauthorized", 401, func(c *rest.Config) { c.ExecProvider = plugIn() }, []string{"the plug-in true"}},
		{"no credentials", "Forbidden", 403, func(*rest.Config) {}, []string{"no credentials", "name a user with a token"}},
		{"no right", "Forbidden", 403, func(c *rest.Config) { c.BearerToken = "s3cret" }, []string{"said", "bind a Role", "create and update"}},
	} {
		config := &rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
		c.change(config)
		cl, err := newClient(config, "test")
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		answer := httptest.NewRecorder()
		status(answer, c.code, c.reason, "leases")
		text := cl.readStatus(answer.Result()).Error()
		for _, want := range c.want {
			if !strings.Contains(text, want) || strings.Contains(text, "s3cret") {
				t.Errorf("%s: %q is not in: %s", c.what, want, text)
			}
		}
	}
}

func plugIn() *api.ExecConfig {
	return &api.ExecConfig{
		Command: "true", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.NeverExecInteractiveMode,
		PluginPolicy: api.PluginPolicy{PolicyType: api.PluginPolicyAllowAll},
	}
}

// TestRestoreWhileWatchBegins: a read shows another history after the list and before the watch.
// The watch begins again, although nothing happens in it, and pushes the state of that history.
func TestRestoreWhileWatchBegins(t *testing.T) {
	var s *Store
	var revision atomic.Uint64
	revision.Store(100)
	s, _ = serving(t, func(_ int64, w http.ResponseWriter, r *http.Request) {
		now := revision.Load()
		item := fmt.Sprintf(`{"metadata":{"name":"a","uid":"u","resourceVersion":"%d"},"spec":{}}`, now)
		switch {
		case r.URL.Query().Get("watch") == "true":
			if revision.CompareAndSwap(100, 50) {
				if e, err := s.Read(r.Context(), "a"); err != nil || e.Version != "50@u" {
					t.Errorf("the read shows %s, %v", e.Version, err)
				}
			}
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/leases"):
			_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d"},"items":[%s]}`, now, item)
		default:
			_, _ = fmt.Fprint(w, item)
		}
	})
	if _, err := s.Read(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	pushes := make(chan driver.Entry, 100)
	stop, err := s.Watch(t.Context(), "a", func(e driver.Entry) { pushes <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for e := range pushes {
		if e.Version == "50@u" {
			return
		}
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
