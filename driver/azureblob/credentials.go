package azureblob

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/bearer"
	"github.com/tenure-go/tenure/driver/object"
	"github.com/tenure-go/tenure/driver/reread"
)

// secret is the key of an account or a SAS token, with the place that a connection string names.
type secret struct {
	key, sas          string
	account, endpoint string
}

// source says where credentials come from.
type source struct {
	fixed      secret
	file       string                 // it replaces the fixed one; empty: there is none
	credential azcore.TokenCredential // it gets access tokens; nil: none are used
}

func fromEnvironment(set settings) (from source, err error) {
	key, sas := os.Getenv("AZURE_STORAGE_KEY"), os.Getenv("AZURE_STORAGE_SAS_TOKEN")
	text := os.Getenv("AZURE_STORAGE_CONNECTION_STRING")
	switch {
	case set.file != "":
		from.file = set.file
		from.fixed, err = readSecret(set.file)
	case text != "":
		if from.fixed, err = parseSecret(text); err != nil {
			err = fmt.Errorf("AZURE_STORAGE_CONNECTION_STRING: %w", err)
		}
	case key != "":
		from.fixed.key = key
	case sas != "":
		from.fixed.sas = strings.TrimPrefix(sas, "?")
	default:
		from.credential, err = azidentity.NewDefaultAzureCredential(nil)
	}
	return from, err
}

func readSecret(file string) (secret, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return secret{}, fmt.Errorf("the file of credentials: %w", err)
	}
	found, err := parseSecret(strings.TrimSpace(string(text)))
	if err != nil {
		return secret{}, fmt.Errorf("file %s: %w", file, err)
	}
	return found, nil
}

var errNoSecret = errors.New("it holds no connection string with AccountName and AccountKey, or with BlobEndpoint and " +
	"SharedAccessSignature, and no SAS token with sig=; copy one from \"az storage account show-connection-string\"")

// parseSecret reads a connection string, a SAS token, or a URL with one. Its errors show nothing.
func parseSecret(text string) (secret, error) {
	if _, query, ok := strings.Cut(text, "?"); ok && !strings.Contains(text, ";") {
		text = query
	}
	if values, err := url.ParseQuery(text); err == nil && values.Get("sig") != "" {
		return secret{sas: text}, nil
	}
	fields := map[string]string{}
	for field := range strings.SplitSeq(text, ";") {
		if name, value, ok := strings.Cut(field, "="); ok {
			fields[name] = value
		}
	}
	s := secret{
		key: fields["AccountKey"], sas: strings.TrimPrefix(fields["SharedAccessSignature"], "?"),
		account: fields["AccountName"], endpoint: fields["BlobEndpoint"],
	}
	if s.endpoint == "" && s.account != "" && (fields["EndpointSuffix"] != "" || fields["DefaultEndpointsProtocol"] != "") {
		s.endpoint = cmp.Or(fields["DefaultEndpointsProtocol"], "https") + "://" + s.account + ".blob." + cmp.Or(fields["EndpointSuffix"], domain)
	}
	if s.sas == "" && (s.key == "" || s.account == "") || s.account == "" && s.endpoint == "" {
		return secret{}, errNoSecret
	}
	return s, nil
}

// domain is that of the public cloud.
const domain = "core.windows.net"

// locate completes the account and the endpoint by each other and by the secret.
func (s *Store) locate(set settings, fixed secret) (endpoint *url.URL, err error) {
	if fixed.account != "" && s.account != "" && fixed.account != s.account {
		return nil, fmt.Errorf("the connection string is for account %q, not %q", fixed.account, s.account)
	}
	s.account = cmp.Or(s.account, fixed.account)
	text := cmp.Or(set.endpoint, fixed.endpoint)
	if text == "" {
		if err := CheckAccount(s.account); err != nil {
			return nil, err
		}
		text = "https://" + s.account + ".blob." + domain
	}
	endpoint, err = url.Parse(strings.TrimRight(text, "/"))
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" || endpoint.User != nil || endpoint.RawQuery != "" {
		return nil, errors.New("the endpoint is not a URL such as https://myaccount.blob.core.windows.net")
	}
	named, rest, _ := strings.Cut(endpoint.Hostname(), ".")
	if path := strings.Trim(endpoint.Path, "/"); path != "" { // as emulators have it
		named = path
	}
	s.account = cmp.Or(s.account, named)
	switch {
	case strings.HasSuffix(named, "-secondary"):
		return nil, fmt.Errorf("%w: %s is the secondary endpoint of the account, which may lack the last writes; use the primary one",
			driver.ErrUnfit, endpoint.Host+endpoint.Path)
	case named != s.account && strings.HasPrefix(rest, "blob."):
		return nil, fmt.Errorf("the endpoint %s is that of account %q, not %q", endpoint.Host, named, s.account)
	}
	return endpoint, nil
}

// CheckAccount returns an error unless Azure accepts the name of a storage account: 3 to 24 small
// letters and digits.
func CheckAccount(name string) error {
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	if len(name) < 3 || len(name) > 24 || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("no storage account can have the name %.80q: it has 3 to 24 small letters and digits", name)
	}
	return nil
}

// newClients returns a function for the client of the next request.
func (s *Store) newClients(set settings, from source) (func(context.Context) *client, error) {
	if set.client == nil {
		return nil, errors.New("the client is nil")
	}
	endpoint, err := s.locate(set, from.fixed)
	if err != nil {
		return nil, err
	}
	if from.credential != nil && endpoint.Scheme != "https" {
		return nil, errors.New("the endpoint is http://, where an access token can be read on its way; use https://, or a key or a SAS token")
	}
	options := s.options(object.WithoutRedirects(set.client))
	first, err := s.newClient(endpoint.String(), options, from.fixed)
	if err != nil || from.file == "" {
		return func(context.Context) *client { return first }, err
	}
	var mu sync.Mutex
	last := first
	read := func(context.Context) (*client, error) {
		now, err := readSecret(from.file)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		if now != last.secret {
			made, err := s.newClient(endpoint.String(), options, now)
			if err != nil {
				return nil, err
			}
			last = made
		}
		return last, nil
	}
	return reread.New(first, read, set.report).Get, nil
}

// options turn off all retries, and add access tokens.
func (s *Store) options(h *http.Client) *service.ClientOptions {
	o := &service.ClientOptions{ClientOptions: azcore.ClientOptions{
		Retry: policy.RetryOptions{MaxRetries: -1}, Transport: h, Telemetry: policy.TelemetryOptions{ApplicationID: "tenure"},
		PerRetryPolicies: []policy.Policy{signer{s}},
	}}
	// It delays requests after one that was throttled.
	o.ExpectContinueBehavior.Mode = blob.ExpectContinueModeOff
	return o
}

func (s *Store) newClient(endpoint string, o *service.ClientOptions, sec secret) (*client, error) {
	place := endpoint + "/"
	if sec.sas != "" {
		place += "?" + sec.sas
	}
	account, err := service.NewClientWithNoCredential(place, o)
	if sec.key != "" {
		key, odd := service.NewSharedKeyCredential(s.account, sec.key)
		if odd != nil {
			return nil, errors.New("the key of the account is not in base64; copy it from \"az storage account keys list\"")
		}
		account, err = service.NewClientWithSharedKeyCredential(place, key, o)
	}
	if err != nil {
		return nil, err
	}
	return &client{account.NewContainerClient(s.container), account, sec}, nil
}

// signer adds the access token to each request. The client library's own policy may wait for a
// token longer than the context of the call lasts, and sends a request twice when a token has
// ended early.
type signer struct{ s *Store }

// Do sends the request.
func (p signer) Do(r *policy.Request) (*http.Response, error) {
	r.Raw().Header.Set("Accept-Encoding", "identity") // the bytes as they are stored
	if p.s.tokens == nil {
		return r.Next()
	}
	token, err := p.s.tokens.Sign(r.Raw().Context(), r.Raw())
	if err != nil {
		return nil, unsentError{err}
	}
	answer, err := r.Next()
	switch {
	case err != nil:
	case answer.StatusCode == http.StatusUnauthorized:
		defer func() { _ = answer.Body.Close() }()
		p.s.claims.Store(claims(answer.Header.Get("WWW-Authenticate")))
		return nil, p.s.tokens.Refused(token, read(answer))
	default:
		p.s.tokens.Accepted(token)
	}
	return answer, err
}

// claims returns what a refused token lacks, as its issuer wants to be told; empty: nothing. A
// credential that keeps tokens gets another one because of it.
func claims(challenge string) string {
	_, rest, _ := strings.Cut(challenge, `claims="`)
	encoded, _, _ := strings.Cut(rest, `"`)
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}
	return string(text)
}

// unsentError is the error of a request that was not sent.
type unsentError struct{ error }

// Unwrap returns the reason.
func (e unsentError) Unwrap() error { return e.error }

// scope is that of access tokens for storage, in all clouds.
const scope = "https://storage.azure.com/.default"

// tokensOf returns a function that gets a token.
func (s *Store) tokensOf(c azcore.TokenCredential) func(context.Context) (*bearer.Token, error) {
	return func(ctx context.Context) (*bearer.Token, error) {
		lacking, _ := s.claims.Swap("").(string)
		t, err := c.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}, EnableCAE: true, Claims: lacking})
		if err == nil {
			return &bearer.Token{Text: t.Token, Ends: t.ExpiresOn}, nil
		}
		err = fmt.Errorf("no access token: give the machine or workload an identity, set AZURE_STORAGE_CONNECTION_STRING, "+
			"AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or run \"az login\"; a secret may have ended, or the clock of this machine "+
			"be wrong: %w", brief(err))
		var failed *azidentity.AuthenticationFailedError
		if errors.As(err, &failed) && failed.RawResponse != nil && slices.Contains(certain, failed.RawResponse.StatusCode) {
			err = fmt.Errorf("%w: %w", driver.ErrDenied, err)
		}
		return nil, err
	}
}

// certain are the answers to requests for a token that do not change by themselves.
var certain = []int{http.StatusBadRequest, http.StatusUnauthorized}

// briefError is the error of a library with its text on one line.
type briefError struct{ error }

func brief(err error) error { return briefError{err} }

// Error returns at most 500 bytes.
func (e briefError) Error() string {
	text := strings.Join(slices.DeleteFunc(strings.Fields(e.error.Error()), isRule), " ")
	if len(text) > 500 {
		text = text[:500] + "..."
	}
	return text
}

// isRule reports whether a word is a line between paragraphs.
func isRule(word string) bool { return strings.Trim(word, "-") == "" }

// Unwrap returns the error.
func (e briefError) Unwrap() error { return e.error }
