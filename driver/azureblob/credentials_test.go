package azureblob

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/bearer"
	"github.com/tenure-go/tenure/internal/test/azurefake"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// noCredential gets no token.
type noCredential struct{}

func (noCredential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, errors.New("first line\n\tsecond line")
}

// identity makes tokens for one hour, each of which the server knows.
type identity struct {
	s      *site
	made   int
	fault  error
	claims string // of the last request
}

func (m *identity) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if m.fault != nil {
		return azcore.AccessToken{}, m.fault
	}
	m.claims = o.Claims
	m.made++
	name := "token" + strings.Repeat("x", m.made)
	m.s.Allow(name, azurefake.Candidate)
	return azcore.AccessToken{Token: name, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// signed returns a store with tokens. The fake has no TLS, so New would refuse them.
func (s *site) signed(t testing.TB, c azcore.TokenCredential) *Store {
	store, err := open("", "elections", settle([]Option{WithClient(s.network.Client()), WithEndpoint(s.url)}), source{})
	must(t, err)
	store.tokens = bearer.New(store.tokensOf(c), nil)
	return store
}

func readOf(t *testing.T, store *Store) error {
	_, err := store.Read(wait.Context(t), "key")
	return err
}

// TestFailedRefreshCostsNoCall while the old token is valid.
func TestFailedRefreshCostsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Allow("admin", azurefake.Candidate)
		m := &identity{s: s}
		store := s.signed(t, m)
		must(t, readOf(t, store))
		time.Sleep(57 * time.Minute)
		m.fault = errors.New("the endpoint of the managed identity is away")
		must(t, readOf(t, store))
		m.fault = nil
		time.Sleep(time.Minute)
		must(t, readOf(t, store))
		if m.made != 2 {
			t.Errorf("%d tokens", m.made)
		}
	})
}

// TestRevokedToken: the call fails as one request, and is not taken for a missing right. The next
// call gets another token. If the server refuses that, too, a right is missing.
func TestRevokedToken(t *testing.T) {
	s := start(t)
	s.Allow("admin", azurefake.Candidate)
	m := &identity{s: s}
	store := s.signed(t, m)
	must(t, readOf(t, store))
	s.Revoke("tokenx")
	before := s.Requests(http.MethodGet)
	if err := readOf(t, store); err == nil || errors.Is(err, driver.ErrDenied) || s.Requests(http.MethodGet) != before+1 {
		t.Errorf("after the end of the token: %v, with %d requests", err, s.Requests(http.MethodGet)-before)
	}
	must(t, readOf(t, store))
	store.tokens = bearer.New(func(context.Context) (*bearer.Token, error) { return &bearer.Token{Text: "unknown"}, nil }, nil)
	if err := readOf(t, store); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("with an unknown token: %v", err)
	}
}

// TestClaims: the credential learns why the service refused the token, once.
func TestClaims(t *testing.T) {
	refuse := true
	s := start(t, intercepting(func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) bool {
		if refuse {
			w.Header().Set("WWW-Authenticate", `Bearer realm="", error="insufficient_claims", claims="eyJuYmYiOjF9"`)
			azurefake.Refuse(w, 401, "InvalidAuthenticationInfo", "the session was revoked")
		}
		return refuse
	}))
	m := &identity{s: s}
	store := s.signed(t, m)
	if err := readOf(t, store); !errors.Is(err, driver.ErrDenied) || m.claims != "" {
		t.Errorf("the first token: %v, claims %q", err, m.claims)
	}
	if _ = readOf(t, store); m.claims != `{"nbf":1}` {
		t.Errorf("the second token has claims %q", m.claims)
	}
	refuse = false
	if err := readOf(t, store); err != nil || m.made != 3 {
		t.Errorf("%d tokens, %v", m.made, err)
	}
}

// TestNoToken: nothing was sent, and the error says on one line how to give credentials.
func TestNoToken(t *testing.T) {
	err := readOf(t, start(t).signed(t, noCredential{}))
	if err == nil || !strings.Contains(err.Error(), "nothing was sent") || !strings.Contains(err.Error(), "az login") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}

// TestRefusedIdentity: an answer that does not change by itself is a missing right, and any other
// one is not.
func TestRefusedIdentity(t *testing.T) {
	for status, denied := range map[int]bool{400: true, 401: true, 403: false, 429: false, 500: false} {
		m := &identity{fault: &azidentity.AuthenticationFailedError{RawResponse: &http.Response{StatusCode: status, Body: http.NoBody, Request: new(http.Request)}}}
		if err := readOf(t, start(t).signed(t, m)); err == nil || errors.Is(err, driver.ErrDenied) != denied {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// TestReplacedFile: the next request has the credentials of the file. While it cannot be read, the
// last ones stay.
func TestReplacedFile(t *testing.T) {
	s := start(t)
	s.Allow("first", azurefake.Candidate)
	file := filepath.Join(t.TempDir(), "credentials")
	put := func(text string) { must(t, os.WriteFile(file, []byte(text), 0o600)) }
	var reports []error
	opts := []Option{
		WithCredentialsFile(file), WithEndpoint(s.url), WithClient(s.network.Client()), WithReport(func(err error) { reports = append(reports, err) }),
	}
	if _, err := FromEnvironment(azurefake.Account, "elections", opts...); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the file: %v", err)
	}
	put("?sv=2025-01-05&sig=first\n")
	store, err := FromEnvironment(azurefake.Account, "elections", opts...)
	must(t, err)
	must(t, readOf(t, store))
	put("half of s3cret")
	must(t, readOf(t, store))
	must(t, readOf(t, store))
	if len(reports) != 1 || strings.Contains(reports[0].Error(), "s3cret") {
		t.Errorf("reports: %v", reports)
	}
	s.Revoke("first")
	s.Allow("second", azurefake.Candidate)
	if err := readOf(t, store); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("with the old token: %v", err)
	}
	for _, text := range []string{
		"https://myaccount.blob.core.windows.net/elections?sv=2025-01-05&sig=second",
		"BlobEndpoint=https://myaccount.blob.core.windows.net/;SharedAccessSignature=sv=2025-01-05&sig=second",
	} {
		put(text)
		must(t, readOf(t, store))
	}
	s.Revoke("second")
	s.Allow("key", azurefake.Candidate)
	put("AccountName=myaccount;AccountKey=c2VjcmV0")
	must(t, readOf(t, store))
}

// TestForbidden says why credentials are refused: by the server's clock.
func TestForbidden(t *testing.T) {
	for why, c := range map[string]struct {
		token string
		off   time.Duration
		want  string
	}{
		"the token ended":           {"se=2020-01-01T00:00:00Z&sig=s", 0, "the SAS token ended at 2020-01-01"},
		"a token without a second":  {"se=2020-01-01T00:00Z&sig=s", 0, "the SAS token ended at 2020-01-01"},
		"a token of a stored rule":  {"si=rule&sig=s", 0, "its policy removed"},
		"the clock is behind":       {"se=2999-01-01T00:00:00Z&sig=s", time.Hour, "off by about 1h0m0s"},
		"the clock is ahead":        {"se=2999-01-01T00:00:00Z&sig=s", -time.Hour, "off by about 1h0m0s"},
		"the clock is nearly right": {"se=2999-01-01T00:00:00Z&sig=s", 5 * time.Minute, "its key may have been replaced"},
	} {
		s := start(t, intercepting(func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) bool {
			w.Header().Set("Date", time.Now().Add(c.off).UTC().Format(http.TimeFormat))
			azurefake.Refuse(w, 403, "AuthenticationFailed", "Server failed to authenticate the request.\nRequestId:1")
			return true
		}))
		store, err := New(s.url+"/elections?"+c.token, nil, WithClient(s.network.Client()))
		must(t, err)
		if err := readOf(t, store); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "RequestId") {
			t.Errorf("%s: want %q in: %v", why, c.want, err)
		}
	}
	s := start(t)
	s.Allow("another", azurefake.Candidate)
	store, err := FromConnectionString("AccountName=myaccount;AccountKey=c2VjcmV0;BlobEndpoint="+s.url, "elections", WithClient(s.network.Client()))
	must(t, err)
	if err := readOf(t, store); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "key of the account may have been replaced") {
		t.Error(err)
	}
}

// TestAtToken warns a week before the end of a SAS token.
func TestAtToken(t *testing.T) {
	store, err := New("https://myaccount.blob.core.windows.net/elections?se=2026-12-10T00:00:00Z&sig=s", nil)
	must(t, err)
	for day, want := range map[int]int{1: 0, 4: 1, 11: 1} {
		if found := store.atToken(t.Context(), time.Date(2026, 12, day, 0, 0, 0, 0, time.UTC)); len(found) != want {
			t.Errorf("on day %d: %v", day, found)
		}
	}
}

// TestPlaces: the endpoint and the account follow from each other.
func TestPlaces(t *testing.T) {
	const key = ";AccountKey=c2VjcmV0"
	for text, want := range map[string]string{
		"AccountName=myaccount" + key: "https://myaccount.blob.core.windows.net/elections",
		"DefaultEndpointsProtocol=https;AccountName=myaccount;EndpointSuffix=core.chinacloudapi.cn" + key: "https://myaccount.blob.core.chinacloudapi.cn/elections",
		"AccountName=myaccount;BlobEndpoint=http://127.0.0.1:10000/myaccount" + key:                       "http://127.0.0.1:10000/myaccount/elections",
		"BlobEndpoint=https://myaccount.blob.core.windows.net/;SharedAccessSignature=sig=s":               "https://myaccount.blob.core.windows.net/elections?sig=s",
		"BlobEndpoint=http://127.0.0.1:10000/myaccount;SharedAccessSignature=?sig=s":                      "http://127.0.0.1:10000/myaccount/elections?sig=s",
	} {
		store, err := FromConnectionString(text, "elections")
		if err != nil || store.account != "myaccount" || store.clients(t.Context()).URL() != want {
			t.Errorf("%s: %v", text, err)
		} else if got := store.clients(t.Context()).URL(); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
