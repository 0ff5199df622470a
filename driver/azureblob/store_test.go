package azureblob

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
	"github.com/tenure-go/tenure/internal/test/azurefake"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// site is a fake on a network of pipes, which works in a bubble if it was started there.
type site struct {
	*azurefake.Server
	url     string
	network *pipenet.Network
}

func start(t testing.TB, change ...func(*azurefake.Server)) *site {
	s := &site{Server: azurefake.New("elections"), network: new(pipenet.Network)}
	for _, c := range change {
		c(s.Server)
	}
	l, err := s.network.Listen("tcp", "")
	must(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: s}}
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL + "/" + azurefake.Account
	return s
}

// intercepting sets a function that returns true if it has answered a request itself.
func intercepting(f func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool) func(*azurefake.Server) {
	return func(s *azurefake.Server) { s.Intercept = f }
}

// open returns a store with a SAS token, which has checked nothing yet.
func (s *site) open(t testing.TB, sig string, opts ...Option) *Store {
	t.Helper()
	store, err := New(s.url+"/elections?sv=2025-01-05&sig="+sig, nil, append([]Option{WithClient(s.network.Client())}, opts...)...)
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
	s.Allow("candidate", azurefake.Candidate+"l")
	s.Allow("stranger", "")
	remove := func(_ context.Context, key string) error { s.Delete("elections", key); return nil }
	return drivertest.Harness{
		Store: s.open(t, "candidate"), Peer: s.open(t, "candidate"), Denied: s.open(t, "stranger"),
		Delete: remove, Purge: remove, FloorTick: time.Second,
		Recreate: func(context.Context) error { s.Recreate("elections"); return nil },
	}
}

func TestConformance(t *testing.T) { drivertest.RunInBubbles(t, harness) }

// TestRecords: an upload names its type, and no cache may keep it.
func TestRecords(t *testing.T) {
	s := start(t)
	store := s.open(t, "any", WithPrefix("/a/b/"))
	_, err := store.CompareAndSwap(wait.Context(t), "c/d ü", "", []byte("value"))
	must(t, err)
	value, header := s.Value("elections", "a/b/c/d ü")
	if value != "value" || header.Get("X-Ms-Blob-Cache-Control") != "no-store" || header.Get("X-Ms-Blob-Content-Type") != "application/json" {
		t.Errorf("the blob has %q with %v", value, header)
	}
	keys, err := store.Keys(wait.Context(t))
	if err != nil || !slices.Equal(keys, []string{"c/d ü"}) {
		t.Errorf("the keys are %q, %v", keys, err)
	}
}

// TestKeysHasAllPages: the fake gives two names in a page.
func TestKeysHasAllPages(t *testing.T) {
	s := start(t)
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprint("k", i))
		s.Set("elections", want[i], "value")
	}
	s.Set("elections", "empty", "")
	s.Set("elections", object.ProbePrefix+"x", "value")
	keys, err := s.open(t, "any").Keys(wait.Context(t))
	if err != nil || !slices.Equal(keys, want) {
		t.Errorf("the keys are %q, %v", keys, err)
	}
}

type fault func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc)

// outcomes are answers to a write that may have been applied.
var outcomes = []struct {
	why     string
	fault   fault
	applied bool
	want    error  // that it wraps; nil: the outcome is open
	says    string // in the error
}{
	{"a lost answer is no conflict", applied(func(http.ResponseWriter) { panic(http.ErrAbortHandler) }), true, nil, ""},
	{"an answer that breaks off", applied(func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "100")
		panic(http.ErrAbortHandler)
	}), true, nil, ""},
	{"an answer without an ETag", applied(func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated) }), true, nil, "ETag"},
	{"an answer with a weak ETag", applied(func(w http.ResponseWriter) { w.Header().Set("ETag", `W/"0x1"`); w.WriteHeader(http.StatusCreated) }), true, nil, "ETag"},
	{"500 after the write was applied", applied(func(w http.ResponseWriter) {
		azurefake.Refuse(w, 500, "OperationTimedOut", "try again")
	}), true, nil, "OperationTimedOut"},
	{"a lost request", func(http.ResponseWriter, *http.Request, http.HandlerFunc) { panic(http.ErrAbortHandler) }, false, nil, ""},
	{"429", answering(429, "TooManyRequests"), false, nil, "fewer requests"},
	{"503", answering(503, "ServerBusy"), false, nil, "fewer requests"},
	{"403", answering(403, "AuthorizationPermissionMismatch"), false, driver.ErrDenied, "Storage Blob Data Contributor"},
	{"403 of a firewall", answering(403, "AuthorizationFailure"), false, driver.ErrDenied, "network rules"},
	{"401", answering(401, "NoAuthenticationInformation"), false, driver.ErrDenied, "credentials"},
	{"412", answering(412, "ConditionNotMet"), false, driver.ErrConflict, ""},
	{"412 without a code", answering(412, ""), false, driver.ErrConflict, ""},
	{"412 because of a lease is no conflict", answering(412, "LeaseIdMissing"), false, nil, "lease break"},
	{"409 of a blob that exists", answering(409, "BlobAlreadyExists"), false, driver.ErrConflict, ""},
	{"409 of a container that is being deleted", answering(409, "ContainerBeingDeleted"), false, nil, "being deleted"},
	{"409 of an immutable blob", answering(409, "BlobImmutableDueToPolicy"), false, nil, "immutability policy"},
	{"409 of another kind", answering(409, "PendingCopyOperation"), false, nil, "PendingCopyOperation"},
	{"404", answering(404, "ContainerNotFound"), false, nil, "no container elections in account myaccount"},
	{"a redirect is not followed", func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) {
		http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
	}, false, nil, "redirect"},
}

// applied carries the request out, and answers otherwise.
func applied(answer func(http.ResponseWriter)) fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(httptest.NewRecorder(), r)
		answer(w)
	}
}

func answering(status int, code string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		azurefake.Refuse(w, status, code, "the text")
	}
}

// TestOutcomes: each write is one request, whatever the answer is.
func TestOutcomes(t *testing.T) {
	for _, c := range outcomes {
		t.Run(c.why, func(t *testing.T) {
			s := start(t, intercepting(func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool {
				if r.Method != http.MethodPut {
					return false
				}
				c.fault(w, r, serve)
				return true
			}))
			store := s.checked(t)
			_, err := store.Read(wait.Context(t), "key") // opens a connection
			must(t, err)
			_, err = store.CompareAndSwap(wait.Context(t), "key", "", []byte("value"))
			if n := s.Requests(http.MethodPut); err == nil || n != 1 {
				t.Fatalf("%d requests, error %v", n, err)
			}
			if value, _ := s.Value("elections", "key"); (value != "") != c.applied {
				t.Errorf("the blob has %q", value)
			}
			for _, sentinel := range []error{driver.ErrConflict, driver.ErrDenied, driver.ErrUnfit} {
				if errors.Is(err, sentinel) != errors.Is(c.want, sentinel) {
					t.Errorf("want %v: %v", c.want, err)
				}
			}
			if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "sig=") || strings.Contains(err.Error(), "\n") {
				t.Errorf("want %q, on one line and without the token, in: %v", c.says, err)
			}
		})
	}
}

// TestReads: a read that is not known is no absence.
func TestReads(t *testing.T) {
	for why, c := range map[string]struct {
		fault fault
		says  string
	}{
		"a missing container": {answering(404, "ContainerNotFound"), "no container elections"},
		"a proxy's 404":       {func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) { http.NotFound(w, r) }, "not that of Blob Storage"},
		"no ETag":             {func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { fmt.Fprint(w, "value") }, "ETag"},
		"a half":              {func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { half(w) }, "broke off"},
		"503":                 {answering(503, "ServerBusy"), "503"},
		"a lost answer":       {func(http.ResponseWriter, *http.Request, http.HandlerFunc) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		s := start(t, intercepting(func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool {
			c.fault(w, r, serve)
			return true
		}))
		_, err := s.checked(t).Read(wait.Context(t), "key")
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "sig=") {
			t.Errorf("%s: want %q in: %v", why, c.says, err)
		}
	}
}

func half(w http.ResponseWriter) {
	w.Header().Set("ETag", `"0x1"`)
	w.Header().Set("Content-Length", "100")
	_, _ = w.Write([]byte("value"))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// TestForeignLease: a read shows the lease of another program as an alarm, and a write fails
// without being taken for a conflict. When the lease has ended, the same version is replaced.
func TestForeignLease(t *testing.T) {
	s := start(t)
	store := s.open(t, "any")
	ctx := wait.Context(t)
	v, err := store.CompareAndSwap(ctx, "key", "", []byte("value"))
	must(t, err)
	s.Lease("elections", "key", true)
	e, err := store.Read(ctx, "key")
	if err != nil || e.Version != v || e.Notice == nil || !strings.Contains(e.Notice.Error(), "az storage blob lease break") {
		t.Errorf("read %+v, %v", e, err)
	}
	if _, err := store.CompareAndSwap(ctx, "key", v, []byte("next")); err == nil || errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied) {
		t.Errorf("a write under the lease: %v", err)
	}
	s.Lease("elections", "key", false)
	if e, err = store.Read(ctx, "key"); err != nil || e.Notice != nil {
		t.Errorf("read %+v, %v", e, err)
	}
	_, err = store.CompareAndSwap(ctx, "key", v, []byte("next"))
	must(t, err)
}

// TestRestoredBlob: a deleted blob that comes back has another version, and a write from the one
// before is refused.
func TestRestoredBlob(t *testing.T) {
	s := start(t)
	store := s.open(t, "any")
	before, err := store.CompareAndSwap(wait.Context(t), "key", "", []byte("value"))
	must(t, err)
	s.Delete("elections", "key")
	s.Set("elections", "key", "value")
	e, err := store.Read(wait.Context(t), "key")
	if err != nil || e.Version == before || string(e.Value) != "value" {
		t.Errorf("read %+v, %v", e, err)
	}
	if _, err := store.CompareAndSwap(wait.Context(t), "key", before, []byte("late")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a late write: %v", err)
	}
}

// TestRights takes each right away.
func TestRights(t *testing.T) {
	for _, c := range []struct{ lacks, fails, says string }{
		{"", "", ""},
		{"r", "read absent", "with r"},
		{"l", "list", "with l"},
		{"cdi", "", ""}, // the right to write includes that to create
		{"w", "update rights", "with w"},
		{"cw", "insert update rights", "with w"},
	} {
		t.Run("without "+c.lacks, func(t *testing.T) {
			s := start(t)
			store := s.open(t, "candidate")
			s.Set("elections", object.ConditionsName, "another's check")
			v := s.Set("elections", "held", "value")
			s.Allow("candidate", strings.Map(func(r rune) rune {
				if strings.ContainsRune(c.lacks, r) {
					return -1
				}
				return r
			}, azurefake.All))
			store.conditions.Trust()
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

// TestCarelessServerIsNeverWrittenTo: the cell keeps what it holds, or stays absent.
func TestCarelessServerIsNeverWrittenTo(t *testing.T) {
	for _, ignored := range []string{"If-None-Match", "If-Match"} {
		s := start(t, func(f *azurefake.Server) { f.Ignore = ignored })
		held := s.Set("elections", "held", "precious")
		store := s.open(t, "any")
		ctx := wait.Context(t)
		for range 2 {
			_, created := store.CompareAndSwap(ctx, "absent", "", []byte("mine"))
			_, swapped := store.CompareAndSwap(ctx, "held", driver.Version(held), []byte("mine"))
			for call, err := range map[string]error{"create": created, "swap": swapped, "check": store.CheckRights(ctx, "held")} {
				if !errors.Is(err, driver.ErrUnfit) || errors.Is(err, driver.ErrConflict) || !strings.Contains(err.Error(), ignored) {
					t.Errorf("ignores %s: %s: %v", ignored, call, err)
				}
			}
		}
		value, _ := s.Value("elections", "held")
		if absent, _ := s.Value("elections", "absent"); value != "precious" || absent != "" {
			t.Errorf("ignores %s: the cells hold %q and %q", ignored, value, absent)
		}
		found, err := store.Inspect(ctx, time.Minute)
		if err != nil || !slices.ContainsFunc(found, func(f driver.Finding) bool { return f.Severity == driver.Unsafe }) {
			t.Errorf("ignores %s: Inspect finds %v, %v", ignored, found, err)
		}
	}
}

// TestCreateContainer makes it once, and names the missing right.
func TestCreateContainer(t *testing.T) {
	s := start(t)
	store, err := New(s.url+"/another?sig=operator", nil, WithClient(s.network.Client()))
	must(t, err)
	s.Allow("operator", azurefake.Candidate)
	if err := store.CreateContainer(wait.Context(t)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "to make a container needs") {
		t.Errorf("without the right: %v", err)
	}
	s.Allow("operator", azurefake.All)
	for range 2 {
		must(t, store.CreateContainer(wait.Context(t)))
	}
	_, err = store.CompareAndSwap(wait.Context(t), "key", "", []byte("value"))
	must(t, err)
}

// TestInspect finds settings of the account and the container, and leaves nothing behind.
func TestInspect(t *testing.T) {
	header := func(name string) func(*azurefake.Server) {
		return func(f *azurefake.Server) { f.Headers = map[string]string{name: "true"} }
	}
	for _, c := range []struct {
		why, want string
		change    func(*azurefake.Server)
	}{
		{"nothing to find", "", func(*azurefake.Server) {}},
		{"zones", "", func(f *azurefake.Server) { f.SKU = "Standard_ZRS" }},
		{"two regions", "warning: redundancy", func(f *azurefake.Server) { f.SKU = "Standard_GRS" }},
		{"two regions, and reads from the second", "warning: redundancy", func(f *azurefake.Server) { f.SKU = "Standard_RAGZRS" }},
		{"versions", "advice: versioning", func(f *azurefake.Server) { f.Versioning = true }},
		{"kept blobs", "advice: soft delete", func(f *azurefake.Server) { f.SoftDelete = 7 }},
		{"a policy", "unsafe: immutability policy", header("X-Ms-Has-Immutability-Policy")},
		{"a hold", "unsafe: legal hold", header("X-Ms-Has-Legal-Hold")},
		{"versions that stay", "advice: version-level immutability", header("X-Ms-Immutable-Storage-With-Versioning-Enabled")},
	} {
		s := start(t, c.change)
		found, err := s.open(t, "any").Inspect(wait.Context(t), time.Minute)
		must(t, err)
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0].String(), c.want)) {
			t.Errorf("%s: %v", c.why, found)
		}
		if s.Requests(http.MethodDelete) != 1 {
			t.Error("the blob stays")
		}
	}
}

// TestInspectWithFewRights: settings that cannot be read are no finding, and a blob that stays is.
func TestInspectWithFewRights(t *testing.T) {
	s := start(t, func(f *azurefake.Server) { f.SKU, f.SoftDelete = "Standard_GRS", 7 })
	s.Allow("candidate", azurefake.Candidate)
	found, err := s.open(t, "candidate").Inspect(wait.Context(t), time.Minute)
	if err != nil || len(found) != 1 || found[0].Setting != "delete" {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestUnusableSettings(t *testing.T) {
	const url = "https://myaccount.blob.core.windows.net/elections?sig=s"
	of := func(_ *Store, err error) error { return err }
	for want, err := range map[string]error{
		"URL of a container":                of(New("https://myaccount.blob.core.windows.net/elections", nil)),
		"client is nil":                     of(New(url, nil, WithClient(nil))),
		"no container can have the name":    of(New("https://myaccount.blob.core.windows.net/Elections?sig=s", nil)),
		`prefix "a//b"`:                     of(New(url, nil, WithPrefix("a//b"))),
		"of at most 983":                    of(New(url, nil, WithPrefix(strings.Repeat("p", 984)))),
		"secondary endpoint":                of(New("https://myaccount-secondary.blob.core.windows.net/elections?sig=s", nil)),
		"holds no connection string":        of(FromConnectionString("AccountName=myaccount", "elections")),
		"not in base64":                     of(FromConnectionString("AccountName=myaccount;AccountKey=s3cret!", "elections")),
		"no storage account can have":       of(FromConnectionString("AccountName=My;AccountKey=s3cret", "elections")),
		`endpoint is not a URL`:             of(FromConnectionString("AccountName=my;AccountKey=s3cret;BlobEndpoint=localhost:1", "elections")),
		"can be read on its way":            of(New("http://myaccount.blob.core.windows.net/elections", noCredential{})),
		"is for account \"other\", not \"":  from(t, "AZURE_STORAGE_CONNECTION_STRING", "AccountName=other;AccountKey=s3cret"),
		`is that of account "other", not "`: from(t, "AZURE_STORAGE_CONNECTION_STRING", "BlobEndpoint=https://other.blob.core.windows.net;SharedAccessSignature=sig=s3cret"),
		"in base64":                         from(t, "AZURE_STORAGE_KEY", "s3cret!"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("want %q in: %v", want, err)
		}
	}
	if err := of(New("https://myaccount-secondary.blob.core.windows.net/elections?sig=s", nil)); !errors.Is(err, driver.ErrUnfit) {
		t.Error(err)
	}
}

// from opens a store with one variable of the environment.
func from(t *testing.T, variable, value string) error {
	t.Setenv(variable, value)
	_, err := FromEnvironment("myaccount", "elections")
	t.Setenv(variable, "")
	return err
}

func TestCheckKey(t *testing.T) {
	store := start(t).open(t, "any", WithPrefix("four"))
	for _, key := range []string{"billing", "team/billing", "Zürich ☕", "a.b", "..a", ".tenure", strings.Repeat("k", 1019), ".tenure-probe-x/y"} {
		if err := store.CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "../a", "a\nb", "a\x00", "a\xff", "a.", "a./b", `a\b`,
		strings.Repeat("k", 1020), strings.Repeat("k", 980) + "/k", ".tenure-probe-x", "a/.tenure-probe-x"} {
		if err := store.CheckKey(key); err == nil {
			t.Errorf("%q passes", key)
		}
		if _, err := store.CompareAndSwap(t.Context(), key, "", nil); err == nil {
			t.Errorf("%q is written", key)
		}
	}
}
