package gcsobject

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/internal/test/gcsfake"
	"github.com/tenure-go/tenure/internal/test/objecttest"
	"github.com/tenure-go/tenure/internal/test/pipes"
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
	s.url = "http://" + pipes.Serve(t, s.network, s)
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kit has the tests that the stores of clouds share.
var kit = objecttest.Kit{
	Bucket: "bucket", Write: http.MethodPost, Rights: gcsfake.All, Hidden: "Bearer",
	Start: func(t testing.TB, ignores string) objecttest.Site {
		s := start(t, func(f *gcsfake.Server) { f.Ignore = ignores })
		return objecttest.Site{
			Server: s.Server.Server,
			Open:   func(user, prefix string) objecttest.Store { return s.open(t, user, WithPrefix(prefix)) },
			Trust:  func(store objecttest.Store) { store.(*Store).cells.Trust() },
		}
	},
}

func TestConformance(t *testing.T)     { kit.Conformance(t) }
func TestRecords(t *testing.T)         { kit.Records(t) }
func TestKeysHasAllPages(t *testing.T) { kit.Keys(t) }
func TestRestoredObject(t *testing.T)  { kit.Restored(t) }
func TestCheckKey(t *testing.T)        { kit.CheckKey(t) }

func TestCarelessServer(t *testing.T) {
	kit.Careless(t, map[string]string{"0": "ifGenerationMatch of 0", "1": "ifGenerationMatch"})
}

func TestOutcomes(t *testing.T) {
	kit.Outcomes(t,
		objecttest.Applied("a lost answer is no conflict", "", objecttest.Lost),
		objecttest.Applied("an answer that breaks off", "", objecttest.Half("X-Any", "value")),
		objecttest.Applied("an answer without a generation", "generation", func(w http.ResponseWriter) { fmt.Fprint(w, "{}") }),
		objecttest.Applied("503 after the write was applied", "503", refusal(503, "backendError")),
		objecttest.Unapplied("a lost request", nil, "", objecttest.Lost),
		objecttest.Unapplied("429", nil, "one write a second", refusal(429, "rateLimitExceeded")),
		objecttest.Unapplied("403 for too many requests is no missing right", nil, "fewer requests", refusal(403, "userRateLimitExceeded")),
		objecttest.Unapplied("403", driver.ErrDenied, "storage.objects.create", refusal(403, "forbidden")),
		objecttest.Unapplied("401 of a client of the caller's", driver.ErrDenied, "credentials", refusal(401, "authError")),
		objecttest.Unapplied("412", driver.ErrConflict, "", refusal(412, "conditionNotMet")),
		objecttest.Unapplied("404", nil, "no bucket bucket", refusal(404, "notFound")),
		objecttest.Unapplied("a redirect is not followed", nil, "redirect", objecttest.Redirect),
	)
}

func refusal(status int, reason string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { gcsfake.Refuse(w, status, reason, "the text") }
}

func TestReads(t *testing.T) {
	kit.Reads(t, map[string]func(http.ResponseWriter){
		"no bucket bucket": func(w http.ResponseWriter) {
			http.Error(w, "The specified bucket does not exist.", http.StatusNotFound)
		},
		"generation": func(w http.ResponseWriter) { fmt.Fprint(w, "value") },
		"broke off":  objecttest.Half("X-Goog-Generation", "7"),
		"503":        refusal(503, "backendError"),
		"EOF":        objecttest.Lost,
	})
}

// TestRights takes each permission away.
func TestRights(t *testing.T) {
	all := []objecttest.Lack{objecttest.Without("any", gcsfake.All, "", "")}
	for lacks, fails := range map[string]string{
		"get": "read absent rights", "list": "absent list rights", "create": "insert update rights", "delete": "update rights",
	} {
		lacks = "storage.objects." + lacks
		have := slices.DeleteFunc(slices.Clone(gcsfake.All), func(p string) bool { return p == lacks })
		all = append(all, objecttest.Without(lacks, have, fails, lacks))
	}
	kit.Lacks(t, all...)
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
