package gcsobject

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
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/internal/test/gcsfake"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// site is a fake on a network of pipes, which works in a bubble if it was started there.
type site struct {
	*gcsfake.Server
	url     string
	network *pipenet.Network
}

func start(t testing.TB, change ...func(*gcsfake.Server)) *site {
	s := &site{Server: gcsfake.New("bucket"), network: new(pipenet.Network)}
	for _, c := range change {
		c(s.Server)
	}
	l, err := s.network.Listen("tcp", "")
	must(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: s}}
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// intercepting sets a function that returns true if it has answered a request itself.
func intercepting(f func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool) func(*gcsfake.Server) {
	return func(s *gcsfake.Server) { s.Intercept = f }
}

// signer adds a token to each request.
type signer struct {
	http.RoundTripper
	token string
}

func (b signer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// open returns a store that has checked nothing yet.
func (s *site) open(t testing.TB, token string, opts ...Option) *Store {
	t.Helper()
	client := s.network.Client()
	client.Transport = signer{client.Transport, token}
	store, err := New(client, "bucket", append([]Option{WithEndpoint(s.url)}, opts...)...)
	must(t, err)
	return store
}

// checked returns a store that need not check its server any more, so that a test sees only the
// requests of its own calls.
func (s *site) checked(t testing.TB) *Store {
	store := s.open(t, "any")
	store.conditions.Trust()
	return store
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// harness gives the kit a site with two users, of which one has no rights.
func harness(t testing.TB) drivertest.Harness {
	s := start(t)
	s.Allow("candidate", gcsfake.All...)
	s.Allow("stranger")
	remove := func(_ context.Context, key string) error { s.Delete("bucket", key); return nil }
	return drivertest.Harness{
		Store: s.open(t, "candidate"), Peer: s.open(t, "candidate"), Denied: s.open(t, "stranger"),
		Delete: remove, Purge: remove, FloorTick: time.Second,
		Recreate: func(context.Context) error { s.Recreate("bucket"); return nil },
	}
}

func TestConformance(t *testing.T) { drivertest.RunInBubbles(t, harness) }

// TestRecords: an upload names its type, and no cache may keep it.
func TestRecords(t *testing.T) {
	s := start(t)
	store := s.open(t, "any", WithPrefix("/a/b/"))
	_, err := store.CompareAndSwap(wait.Context(t), "c/d", "", []byte("value"))
	must(t, err)
	value, metadata := s.Value("bucket", "a/b/c/d")
	if value != "value" || metadata["cacheControl"] != "no-store" || metadata["contentType"] != "application/json" {
		t.Errorf("the object has %q with %v", value, metadata)
	}
	keys, err := store.Keys(wait.Context(t))
	if err != nil || !slices.Equal(keys, []string{"c/d"}) {
		t.Errorf("the keys are %q, %v", keys, err)
	}
}

// TestKeysHasAllPages: the fake gives two names in a page.
func TestKeysHasAllPages(t *testing.T) {
	s := start(t)
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprint("k", i))
		s.Set("bucket", want[i], "value")
	}
	s.Set("bucket", "empty", "")
	s.Set("bucket", object.ProbePrefix+"x", "value")
	keys, err := s.open(t, "any").Keys(wait.Context(t))
	if err != nil || !slices.Equal(keys, want) {
		t.Errorf("the keys are %q, %v", keys, err)
	}
}

// outcomes are answers to a write that may have been applied.
var outcomes = []struct {
	why     string
	fault   func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc)
	applied bool
	want    error  // that it wraps; nil: the outcome is open
	says    string // in the error
}{
	{"a lost answer is no conflict", func(_ http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}, true, nil, ""},
	{"an answer that breaks off", func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(httptest.NewRecorder(), r)
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte(`{"gen`))
		panic(http.ErrAbortHandler)
	}, true, nil, ""},
	{"an answer without a generation", func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(httptest.NewRecorder(), r)
		fmt.Fprint(w, "{}")
	}, true, nil, "generation"},
	{"503 after the write was applied", func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(httptest.NewRecorder(), r)
		gcsfake.Refuse(w, 503, "backendError", "try again")
	}, true, nil, "503"},
	{"a lost request", func(http.ResponseWriter, *http.Request, http.HandlerFunc) { panic(http.ErrAbortHandler) }, false, nil, ""},
	{"429", answering(429, "rateLimitExceeded"), false, nil, "one write a second"},
	{"403 for too many requests is no missing right", answering(403, "userRateLimitExceeded"), false, nil, "fewer requests"},
	{"403", answering(403, "forbidden"), false, driver.ErrDenied, "storage.objects.create"},
	{"401 of a client of the caller's", answering(401, "authError"), false, driver.ErrDenied, "credentials"},
	{"412", answering(412, "conditionNotMet"), false, driver.ErrConflict, ""},
	{"404", answering(404, "notFound"), false, nil, "no bucket bucket"},
	{"a redirect is not followed", func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) {
		http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
	}, false, nil, "redirect"},
}

func answering(status int, reason string) func(http.ResponseWriter, *http.Request, http.HandlerFunc) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		gcsfake.Refuse(w, status, reason, "the text")
	}
}

// TestOutcomes: each write is one request, whatever the answer is.
func TestOutcomes(t *testing.T) {
	for _, c := range outcomes {
		t.Run(c.why, func(t *testing.T) {
			s := start(t, intercepting(func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool {
				if r.Method != http.MethodPost {
					return false
				}
				c.fault(w, r, serve)
				return true
			}))
			store := s.checked(t)
			_, err := store.Read(wait.Context(t), "key") // opens a connection
			must(t, err)
			_, err = store.CompareAndSwap(wait.Context(t), "key", "", []byte("value"))
			if n := s.Requests(http.MethodPost); err == nil || n != 1 {
				t.Fatalf("%d requests, error %v", n, err)
			}
			if value, _ := s.Value("bucket", "key"); (value != "") != c.applied {
				t.Errorf("the object has %q", value)
			}
			for _, sentinel := range []error{driver.ErrConflict, driver.ErrDenied, driver.ErrUnfit} {
				if errors.Is(err, sentinel) != errors.Is(c.want, sentinel) {
					t.Errorf("want %v: %v", c.want, err)
				}
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("want %q in: %v", c.says, err)
			}
		})
	}
}

// TestReads: a read that is not known is no absence.
func TestReads(t *testing.T) {
	for why, c := range map[string]struct {
		fault func(http.ResponseWriter, *http.Request, http.HandlerFunc)
		says  string
	}{
		"a missing bucket": {func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
			http.Error(w, "The specified bucket does not exist.", http.StatusNotFound)
		}, "no bucket bucket"},
		"no generation": {func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { fmt.Fprint(w, "value") }, "generation"},
		"a half":        {func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { half(w) }, "broke off"},
		"503":           {answering(503, "backendError"), "503"},
	} {
		s := start(t, intercepting(func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool {
			c.fault(w, r, serve)
			return true
		}))
		_, err := s.checked(t).Read(wait.Context(t), "key")
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: want %q in: %v", why, c.says, err)
		}
	}
}

func half(w http.ResponseWriter) {
	w.Header().Set("X-Goog-Generation", "7")
	w.Header().Set("Content-Length", "100")
	_, _ = w.Write([]byte("value"))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// TestRestoredObject: a deleted object that comes back has another version, and a write from the
// one before is refused.
func TestRestoredObject(t *testing.T) {
	s := start(t)
	store := s.open(t, "any")
	before, err := store.CompareAndSwap(wait.Context(t), "key", "", []byte("value"))
	must(t, err)
	s.Delete("bucket", "key")
	s.Set("bucket", "key", "value")
	e, err := store.Read(wait.Context(t), "key")
	if err != nil || e.Version == before || string(e.Value) != "value" {
		t.Errorf("read %+v, %v", e, err)
	}
	if _, err := store.CompareAndSwap(wait.Context(t), "key", before, []byte("late")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a late write: %v", err)
	}
}

// TestRights takes each permission away.
func TestRights(t *testing.T) {
	for _, c := range []struct{ lacks, fails, says string }{
		{"", "", ""},
		{"storage.objects.get", "read rights", "storage.objects.get"},
		{"storage.objects.list", "absent rights", "storage.objects.list"},
		{"storage.objects.create", "insert update rights", "storage.objects.create"},
		{"storage.objects.delete", "update rights", "storage.objects.delete"},
	} {
		t.Run("without "+c.lacks, func(t *testing.T) {
			s := start(t)
			store := s.open(t, "candidate")
			s.Set("bucket", object.ConditionsName, "another's check")
			v := s.Set("bucket", "held", "value")
			s.Allow("candidate", slices.DeleteFunc(slices.Clone(gcsfake.All), func(p string) bool { return p == c.lacks })...)
			store.conditions.Trust()
			ctx := wait.Context(t)
			_, read := store.Read(ctx, "held")
			_, absent := store.Read(ctx, "absent")
			_, insert := store.CompareAndSwap(ctx, "new", "", []byte("value"))
			_, update := store.CompareAndSwap(ctx, "held", driver.Version(v), []byte("value"))
			calls := map[string]error{"read": read, "absent": absent, "insert": insert, "update": update, "rights": store.CheckRights(ctx, "held")}
			for call, err := range calls {
				fails := slices.Contains(strings.Fields(c.fails), call) || call == "absent" && c.lacks == "storage.objects.get"
				if errors.Is(err, driver.ErrDenied) != fails || err != nil && !fails || fails && !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}

// TestCarelessServerIsNeverWrittenTo: the cell keeps what it holds, or stays absent.
func TestCarelessServerIsNeverWrittenTo(t *testing.T) {
	for _, ignored := range []string{"0", "1"} {
		s := start(t, func(f *gcsfake.Server) { f.Ignore = ignored })
		held := s.Set("bucket", "held", "precious")
		store := s.open(t, "any")
		ctx := wait.Context(t)
		for range 2 {
			_, created := store.CompareAndSwap(ctx, "absent", "", []byte("mine"))
			_, swapped := store.CompareAndSwap(ctx, "held", driver.Version(held), []byte("mine"))
			for call, err := range map[string]error{"create": created, "swap": swapped, "check": store.CheckRights(ctx, "held")} {
				if !errors.Is(err, driver.ErrUnfit) || errors.Is(err, driver.ErrConflict) {
					t.Errorf("ignores %s: %s: %v", ignored, call, err)
				}
			}
		}
		value, _ := s.Value("bucket", "held")
		if absent, _ := s.Value("bucket", "absent"); value != "precious" || absent != "" {
			t.Errorf("ignores %s: the cells hold %q and %q", ignored, value, absent)
		}
		found, err := store.Inspect(ctx, time.Minute)
		if err != nil || !slices.ContainsFunc(found, func(f driver.Finding) bool { return f.Severity == driver.Unsafe }) {
			t.Errorf("ignores %s: Inspect finds %v, %v", ignored, found, err)
		}
	}
}

// TestCheckGoesOn: a check that meets a busy server goes on with the next write, and costs at most
// three refused or applied writes.
func TestCheckGoesOn(t *testing.T) {
	posts := 0
	s := start(t, intercepting(func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool {
		if r.Method == http.MethodPost {
			if posts++; posts%2 == 0 {
				gcsfake.Refuse(w, 429, "rateLimitExceeded", "slowly")
				return true
			}
		}
		return false
	}))
	store := s.open(t, "any")
	for i := 1; ; i++ {
		_, err := store.CompareAndSwap(wait.Context(t), "key", "", []byte("value"))
		if err == nil {
			break
		}
		if i > 3 || errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrUnfit) {
			t.Fatalf("try %d: %v", i, err)
		}
	}
	if posts != 7 { // three of the check, the write, and a 429 between each two
		t.Errorf("%d requests", posts)
	}
}

// TestInspect finds settings of the bucket, and leaves nothing behind.
func TestInspect(t *testing.T) {
	for _, c := range []struct {
		settings string
		lease    time.Duration
		want     string
	}{
		{`{}`, 15 * time.Second, ""},
		{`{"locationType":"region","softDeletePolicy":{"retentionDurationSeconds":"0"}}`, 6 * time.Second, ""},
		{`{}`, 5 * time.Second, "warning: lease"},
		{`{"versioning":{"enabled":true}}`, time.Minute, "advice: versioning"},
		{`{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`, time.Minute, "advice: soft delete"},
		{`{"retentionPolicy":{"retentionPeriod":"3600"}}`, time.Minute, "unsafe: retention policy"},
		{`{"defaultEventBasedHold":true}`, time.Minute, "unsafe: event-based hold"},
		{`{"locationType":"multi-region"}`, time.Minute, "advice: location"},
	} {
		s := start(t, func(f *gcsfake.Server) { f.Settings = c.settings })
		store := s.open(t, "any")
		found, err := store.Inspect(wait.Context(t), c.lease)
		must(t, err)
		var text []string
		for _, f := range found {
			text = append(text, f.String())
		}
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.HasPrefix(text[0], c.want)) {
			t.Errorf("%s with %v: %q", c.settings, c.lease, text)
		}
		if s.Requests(http.MethodDelete) != 1 {
			t.Error("the object stays")
		}
	}
}

func TestUnusableSettings(t *testing.T) {
	for want, open := range map[string]func() error{
		"client is nil":     func() error { _, err := New(nil, "bucket"); return err },
		"no name of":        func() error { _, err := FromEnvironment(""); return err },
		"prefix \"a//b\"":   func() error { _, err := FromEnvironment("bucket", WithPrefix("a//b")); return err },
		"endpoint is not":   func() error { _, err := FromEnvironment("bucket", WithEndpoint("localhost:4443")); return err },
		"of at most 983":    func() error { _, err := FromEnvironment("bucket", WithPrefix(strings.Repeat("p", 984))); return err },
		"not a URL such as": func() error { _, err := FromEnvironment("bucket", WithEndpoint("http://a:b@host")); return err },
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in: %v", want, err)
		}
	}
}

func TestCheckKey(t *testing.T) {
	store := start(t).open(t, "any", WithPrefix("four"))
	for _, key := range []string{"billing", "team/billing", "Zürich ☕", "a.b", "..a", ".tenure", strings.Repeat("k", 1019), ".tenure-probe-x/y"} {
		if err := store.CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "../a", "a\nb", "a\x00", "a\xff", strings.Repeat("k", 1020),
		strings.Repeat("k", 980) + "/k", ".tenure-probe-x", "a/.tenure-probe-x"} {
		if err := store.CheckKey(key); err == nil {
			t.Errorf("%q passes", key)
		}
		if _, err := store.CompareAndSwap(t.Context(), key, "", nil); err == nil {
			t.Errorf("%q is written", key)
		}
	}
}
