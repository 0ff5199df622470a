package azureblob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/bearer"
	"github.com/tenure-go/tenure/driver/object"
)

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Store is the elections of one container under one prefix. It must be made by New,
// FromConnectionString or FromEnvironment. Its methods may be called from many goroutines. It does
// not need to be closed.
type Store struct {
	account, container string
	prefix             string // empty, or with a slash at its end
	// clients returns the client for the next request, whose credentials may have been replaced.
	clients func(context.Context) *client
	tokens  *bearer.Source // nil: the client has other credentials
	claims  atomic.Value   // those for the next token, as a string

	cells     *object.Cells
	versioned atomic.Bool // the last write made a version of the blob
}

// client is a client of the container, and one of its account, with one set of credentials.
type client struct {
	*container.Client
	account *service.Client
	secret  secret
}

// New returns the elections in a container, by its URL, such as
// https://myaccount.blob.core.windows.net/elections. The credential gets access tokens, such as one
// of package azidentity. It is nil if the URL carries a shared access signature (SAS). New sends no
// request. It returns an error if the URL, the name of the container or the prefix is not valid,
// and one that wraps driver.ErrUnfit for the secondary endpoint of an account, which may lack the
// last writes.
func New(containerURL string, credential azcore.TokenCredential, opts ...Option) (*Store, error) {
	place, sas, _ := strings.Cut(containerURL, "?")
	at := strings.LastIndexByte(strings.TrimSuffix(place, "/"), '/')
	if at < 0 || (sas == "") == (credential == nil) {
		return nil, errors.New("azureblob: give the URL of a container, with either a credential or a SAS token behind ?")
	}
	set := settle(opts)
	set.endpoint = place[:at]
	return open("", strings.Trim(place[at:], "/"), set, source{fixed: secret{sas: sas}, credential: credential})
}

// FromConnectionString returns the elections in a container. The connection string has the key of
// the account, or a SAS token. FromConnectionString sends no request. Its errors do not show the
// string; they are as for New.
func FromConnectionString(text, container string, opts ...Option) (*Store, error) {
	fixed, err := parseSecret(text)
	if err != nil {
		return nil, fmt.Errorf("azureblob: %w", err)
	}
	return open("", container, settle(opts), source{fixed: fixed})
}

// FromEnvironment returns the elections in a container of an account. It takes the first of these
// credentials: those of WithCredentialsFile, those in the variables
// AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY and AZURE_STORAGE_SAS_TOKEN, and those that
// azidentity.DefaultAzureCredential finds: a client secret or a certificate in the environment,
// workload identity, managed identity, or a login of the az command. It sends no request: the first
// call looks for an access token. Errors are as for New.
func FromEnvironment(account, container string, opts ...Option) (*Store, error) {
	set := settle(opts)
	from, err := fromEnvironment(set)
	if err != nil {
		return nil, fmt.Errorf("azureblob: %w", err)
	}
	return open(account, container, set, from)
}

// open makes a store. The account is empty if the secret or the endpoint names it.
func open(account, name string, set settings, from source) (*Store, error) {
	s, err := newStore(account, name, set, from)
	if err != nil {
		return nil, fmt.Errorf("azureblob: %w", err)
	}
	return s, nil
}

func newStore(account, name string, set settings, from source) (*Store, error) {
	if err := CheckContainer(name); err != nil {
		return nil, err
	}
	prefix, err := names.Prefix(set.prefix)
	if err != nil {
		return nil, err
	}
	s := &Store{account: account, container: name, prefix: prefix}
	if from.credential != nil {
		s.tokens = bearer.New(s.tokensOf(from.credential), set.report)
	}
	if s.clients, err = s.newClients(set, from); err != nil {
		return nil, err
	}
	s.cells = object.NewCells("azureblob", s, object.Check{
		Put: s.put, Read: s.get, Never: noVersion, Place: s.place, Version: "ETag",
		Create: "If-None-Match", Replace: "If-Match",
		Remedy: "use Blob Storage itself, or an emulator that heeds conditions",
	})
	return s, nil
}

// noVersion is an ETag that no blob has.
const noVersion driver.Version = `"0x8D0000000000000"`

// Read returns the state of the cell. The caller may keep the value; if the blob is longer than
// driver.MaxValue, the value is its first driver.MaxValue + 1 bytes. Floor is the server's clock in
// milliseconds, cut off to whole seconds. Notice reports a lease that another program has on the
// blob, under which nothing can be written.
//
// It returns an error that wraps driver.ErrDenied if rights or valid credentials are missing, the
// error of CheckKey, and any other error if the state is not known. The text names a missing
// container, or a wrong clock.
func (s *Store) Read(ctx context.Context, key string) (driver.Entry, error) {
	return s.cells.Read(ctx, key)
}

// CompareAndSwap replaces the state of the cell with value if its version is still prev, and
// returns the version of the new state. The caller may reuse the value.
//
// It returns an error that wraps driver.ErrConflict if the version was different or is gone; one
// that wraps driver.ErrDenied if rights or valid credentials are missing; one that wraps
// driver.ErrUnfit if the server ignores the conditions of writes, when the cell was not written;
// and the error of CheckKey, when nothing was sent. Any other error leaves open whether the value
// was or will be written. Before its first write, a store checks conditions: see the package
// comment.
func (s *Store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return s.cells.CompareAndSwap(ctx, key, prev, value)
}

// place formats a key for a message.
func (s *Store) place(key string) string {
	return fmt.Sprintf("%.200q in container %s of account %s", s.prefix+key, s.container, s.account)
}

// MinLease returns 2 s, as for other object storage.
func (s *Store) MinLease() time.Duration { return 2 * time.Second }

// MaxLease returns 1 h, as for any store without a limit of its own.
func (s *Store) MaxLease() time.Duration { return driver.MaxLease }

// CheckKey returns an error unless the key can be the rest of a blob's name: UTF-8 without control
// characters, at most 1,024 bytes together with the prefix, and at most 984 up to the last slash.
// No part between slashes may be empty, "." or "..", or end with a dot, and none may have a
// backslash: Azure and its tools change such names. The last part may not begin with
// .tenure-probe-: such blobs are for the store's own checks.
func (s *Store) CheckKey(key string) error { return names.CheckKey(s.prefix, key) }

// names are the rules for names of blobs.
var names = object.Names{Odd: func(part string) string {
	switch {
	case strings.HasSuffix(part, "."):
		return fmt.Sprintf("part %q ends with a dot, which Azure may leave out", part)
	case strings.Contains(part, `\`):
		return fmt.Sprintf("part %q has a backslash, which tools take for a slash", part)
	}
	return ""
}}

// Limits returns the limits of a store under a prefix, without any credentials. It returns an error
// if the prefix is not valid.
func Limits(prefix string) (driver.Bounded, error) {
	prefix, err := names.Prefix(prefix)
	return &Store{prefix: prefix}, err
}

// CreateContainer makes the container unless it is there. Elections do not need it; it needs more
// rights than they do. Errors are as for Read.
func (s *Store) CreateContainer(ctx context.Context) error {
	c := s.clients(ctx)
	_, err := c.Create(ctx, nil)
	if err = plain(err); err == nil || look(err).Code == bloberror.ContainerAlreadyExists {
		return nil
	}
	return fmt.Errorf("azureblob: make container %s of account %s: %w", s.container, s.account, s.explain(making, c.secret, err))
}

// CheckContainer returns an error unless Azure accepts the name of a container: 3 to 63 small
// letters, digits and single hyphens between them.
func CheckContainer(name string) error {
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if len(name) < 3 || len(name) > 63 || strings.ContainsFunc(name, odd) || strings.Contains(name, "--") || strings.Trim(name, "-") != name {
		return fmt.Errorf("no container can have the name %.80q: it has 3 to 63 small letters, digits and single hyphens between them", name)
	}
	return nil
}

// Option changes the behavior of New, FromConnectionString and FromEnvironment.
type Option func(*settings)

type settings struct {
	prefix   string
	endpoint string
	file     string
	client   *http.Client
	report   func(error)
}

func settle(opts []Option) settings {
	set := settings{client: &http.Client{Transport: object.NewTransport()}}
	for _, opt := range opts {
		opt(&set)
	}
	return set
}

// WithPrefix puts all blobs under a prefix, as into a folder. "a/b", "/a/b" and "a/b/" mean the
// same. The blob's name is the prefix, a slash and the key.
func WithPrefix(prefix string) Option { return func(set *settings) { set.prefix = prefix } }

// WithEndpoint sets, for FromEnvironment, the URL of the blob service of the account, such as that
// of a national cloud or of an emulator: http://127.0.0.1:10000/devstoreaccount1. The default is
// that of the connection string, and otherwise https://ACCOUNT.blob.core.windows.net. Access tokens
// are sent to https:// alone.
func WithEndpoint(url string) Option { return func(set *settings) { set.endpoint = url } }

// WithCredentialsFile makes FromEnvironment read a connection string or a SAS token from a file
// before each request, so that replaced ones need no restart. While the file cannot be read, the
// last ones stay in use.
func WithCredentialsFile(path string) Option { return func(set *settings) { set.file = path } }

// WithClient sets the client for HTTP, which stays the caller's. The store follows no redirects,
// whatever the client is set to.
func WithClient(client *http.Client) Option { return func(set *settings) { set.client = client } }

// WithReport makes the store call a function with the reason when an access token cannot be
// replaced while the last one is still valid, and when the file of credentials cannot be read
// again, once for each reason.
func WithReport(report func(error)) Option { return func(set *settings) { set.report = report } }
