package gcsobject

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/bearer"
	"github.com/tenure-go/tenure/driver/object"
)

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Endpoint is the address of Google Cloud Storage.
const Endpoint = "https://storage.googleapis.com"

// Store is the elections of one bucket under one prefix. It must be made by New or FromEnvironment.
// Its methods may be called from many goroutines. It does not need to be closed.
type Store struct {
	client   *http.Client
	endpoint string
	bucket   string
	prefix   string         // empty, or with a slash at its end
	tokens   *bearer.Source // nil: the client adds credentials, or there are none
	calls    abandon.Calls
	cells    *object.Cells
}

// New returns the elections in a bucket, over a client that stays the caller's and that adds the
// credentials to each request, such as one of oauth2.NewClient. A call ends with its context, also
// while such a client waits for an access token. The store follows no redirects, whatever the
// client is set to. New sends no request. It returns an error if the client is nil, or if the
// bucket's name, the prefix or the endpoint is not valid.
func New(client *http.Client, bucket string, opts ...Option) (*Store, error) {
	if client == nil {
		return nil, errors.New("gcsobject: the client is nil")
	}
	return newStore(client, bucket, settle(opts))
}

// FromEnvironment returns the elections in a bucket, over a client of its own with application
// default credentials. It sends no request: the first call looks for credentials. The variable
// STORAGE_EMULATOR_HOST names an emulator, which needs no credentials. Errors are as for New.
func FromEnvironment(bucket string, opts ...Option) (*Store, error) {
	set := settle(opts)
	set.useEmulator()
	s, err := newStore(&http.Client{Transport: object.NewTransport()}, bucket, set)
	if err == nil && !set.anonymous {
		s.tokens = bearer.New(func(ctx context.Context) (*bearer.Token, error) { return defaultToken(ctx, nil) }, set.report)
	}
	return s, err
}

func newStore(client *http.Client, bucket string, set settings) (*Store, error) {
	u, err := url.Parse(set.endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return nil, errors.New("gcsobject: the endpoint is not a URL such as https://storage.googleapis.com")
	}
	if bucket == "" || strings.ContainsFunc(bucket, object.Control) || strings.ContainsAny(bucket, " /") {
		return nil, fmt.Errorf("gcsobject: bucket %q: this is no name of a bucket", bucket)
	}
	prefix, err := names.Prefix(set.prefix)
	if err != nil {
		return nil, fmt.Errorf("gcsobject: %w", err)
	}
	s := &Store{client: object.WithoutRedirects(client), endpoint: strings.TrimSuffix(set.endpoint, "/"), bucket: bucket, prefix: prefix}
	s.cells = object.NewCells("gcsobject", s, object.Check{
		Put: s.put, Read: s.get, Never: noVersion, Place: s.place, Version: "generation",
		Create: "ifGenerationMatch of 0", Replace: "ifGenerationMatch",
		Remedy: "use Cloud Storage itself, or an emulator that heeds conditions",
	})
	return s, nil
}

// noVersion is a generation that no object has.
const noVersion driver.Version = "1"

// names are the rules for names of objects.
var names object.Names

// Read returns the state of the cell. The caller may keep the value; if the object is longer than
// driver.MaxValue, the value is its first driver.MaxValue + 1 bytes. Floor is the server's clock in
// milliseconds, cut off to whole seconds.
//
// It returns an error that wraps driver.ErrDenied if rights or valid credentials are missing, the
// error of CheckKey, and any other error if the state is not known. The text names a missing
// bucket.
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
	return fmt.Sprintf("%.200q in bucket %s", s.prefix+key, s.bucket)
}

// Pace is the shortest time between two writes to an object that Cloud Storage takes, about.
const Pace = time.Second

// MinLease returns 3 s: with three renewals in a lease they are 1 s apart, and Cloud Storage takes
// about one write a second for each object.
func (s *Store) MinLease() time.Duration { return 3 * Pace }

// MaxLease returns 1 h, as for any store without a limit of its own.
func (s *Store) MaxLease() time.Duration { return driver.MaxLease }

// CheckKey returns an error unless the key can be the rest of an object's name: UTF-8 without
// control characters, at most 1,024 bytes together with the prefix, and at most 984 up to the last
// slash. No part between slashes may be empty, "." or "..", since proxies and tools resolve such
// parts. The last part may not begin with .tenure-probe-: such objects are for the store's own
// checks.
func (s *Store) CheckKey(key string) error { return names.CheckKey(s.prefix, key) }

// Option changes the behavior of New and FromEnvironment.
type Option func(*settings)

type settings struct {
	prefix    string
	endpoint  string
	anonymous bool
	report    func(error)
}

func settle(opts []Option) settings {
	set := settings{endpoint: Endpoint}
	for _, opt := range opts {
		opt(&set)
	}
	return set
}

// WithPrefix puts all objects under a prefix, as into a folder. "a/b", "/a/b" and "a/b/" mean the
// same. The object's name is the prefix, a slash and the key.
func WithPrefix(prefix string) Option { return func(set *settings) { set.prefix = prefix } }

// WithEndpoint sets the URL of another address of Cloud Storage, such as that of a private
// connection, or of an emulator.
func WithEndpoint(url string) Option { return func(set *settings) { set.endpoint = url } }

// WithoutCredentials makes FromEnvironment send no credentials, as to an emulator.
func WithoutCredentials() Option { return func(set *settings) { set.anonymous = true } }

// WithReport makes FromEnvironment call a function with the reason when an access token cannot be
// replaced while the last one is still valid, once for each reason.
func WithReport(report func(error)) Option { return func(set *settings) { set.report = report } }
