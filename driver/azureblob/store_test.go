package azureblob

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/internal/test/azurefake"
	"github.com/tenure-go/tenure/internal/test/objecttest"
	"github.com/tenure-go/tenure/internal/test/pipes"
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
	s.url = "http://" + pipes.Serve(t, s.network, s) + "/" + azurefake.Account
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kit has the tests that the stores of clouds share.
var kit = objecttest.Kit{
	Bucket: "elections", Write: http.MethodPut, Rights: []string{azurefake.Candidate, "l"}, Hidden: "sig=",
	Start: func(t testing.TB, ignores string) objecttest.Site {
		s := start(t, func(f *azurefake.Server) { f.Ignore = ignores })
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
func TestRestoredBlob(t *testing.T)    { kit.Restored(t) }
func TestCheckKey(t *testing.T)        { kit.CheckKey(t, "a.", "a./b", `a\b`) }

// TestCarelessServer: the error names the condition.
func TestCarelessServer(t *testing.T) {
	kit.Careless(t, map[string]string{"If-None-Match": "If-None-Match", "If-Match": "If-Match"})
}

func TestOutcomes(t *testing.T) {
	etag := func(etag string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.Header()["Etag"] = []string{etag}; w.WriteHeader(http.StatusCreated) }
	}
	kit.Outcomes(t,
		objecttest.Applied("a lost answer is no conflict", "", objecttest.Lost),
		objecttest.Applied("an answer that breaks off", "", objecttest.Half("X-Any", "value")),
		objecttest.Applied("an answer without an ETag", "ETag", etag("")),
		objecttest.Applied("an answer with a weak ETag", "ETag", etag(`W/"0x1"`)),
		objecttest.Applied("500 after the write was applied", "OperationTimedOut", refusal(500, "OperationTimedOut")),
		objecttest.Unapplied("a lost request", nil, "", objecttest.Lost),
		objecttest.Unapplied("429", nil, "fewer requests", refusal(429, "TooManyRequests")),
		objecttest.Unapplied("503", nil, "fewer requests", refusal(503, "ServerBusy")),
		objecttest.Unapplied("403", driver.ErrDenied, "Storage Blob Data Contributor", refusal(403, "AuthorizationPermissionMismatch")),
		objecttest.Unapplied("403 of a firewall", driver.ErrDenied, "network rules", refusal(403, "AuthorizationFailure")),
		objecttest.Unapplied("401", driver.ErrDenied, "credentials", refusal(401, "NoAuthenticationInformation")),
		objecttest.Unapplied("412", driver.ErrConflict, "", refusal(412, "ConditionNotMet")),
		objecttest.Unapplied("412 without a code", driver.ErrConflict, "", refusal(412, "")),
		objecttest.Unapplied("412 because of a lease is no conflict", nil, "lease break", refusal(412, "LeaseIdMissing")),
		objecttest.Unapplied("409 of a blob that exists", driver.ErrConflict, "", refusal(409, "BlobAlreadyExists")),
		objecttest.Unapplied("409 of a container that is being deleted", nil, "being deleted", refusal(409, "ContainerBeingDeleted")),
		objecttest.Unapplied("409 of an immutable blob", nil, "immutability policy", refusal(409, "BlobImmutableDueToPolicy")),
		objecttest.Unapplied("409 of another kind", nil, "PendingCopyOperation", refusal(409, "PendingCopyOperation")),
		objecttest.Unapplied("404", nil, "no container elections in account myaccount", refusal(404, "ContainerNotFound")),
		objecttest.Unapplied("a redirect is not followed", nil, "redirect", objecttest.Redirect),
	)
}

func refusal(status int, code string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { azurefake.Refuse(w, status, code, "the text") }
}

func TestReads(t *testing.T) {
	kit.Reads(t, map[string]func(http.ResponseWriter){
		"no container elections":   refusal(404, "ContainerNotFound"),
		"not that of Blob Storage": func(w http.ResponseWriter) { http.Error(w, "a proxy's", http.StatusNotFound) },
		"ETag":                     func(w http.ResponseWriter) { fmt.Fprint(w, "value") },
		"broke off":                objecttest.Half("ETag", `"0x1"`),
		"503":                      refusal(503, "ServerBusy"),
		"EOF":                      objecttest.Lost,
	})
}

// TestRights takes each right away. That to write includes that to create.
func TestRights(t *testing.T) {
	kit.Lacks(t,
		objecttest.Without("any right", []string{azurefake.All}, "", ""),
		objecttest.Without("r", []string{"cwldi"}, "read absent", "with r"),
		objecttest.Without("l", []string{"rcwdi"}, "list", "with l"),
		objecttest.Without("cdi", []string{"rwl"}, "", ""),
		objecttest.Without("w", []string{"rcldi"}, "update rights", "with w"),
		objecttest.Without("cw", []string{"rldi"}, "insert update rights", "with w"),
	)
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
