package k8slease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/watches"
)

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Store is the elections in one namespace. It must be made by New. Its methods may be called from
// many goroutines. It needs Close only if it has watches.
type Store struct {
	client  *client
	calls   abandon.Calls
	history history
	hub     *watches.Hub
	// following ends the watch of the namespace; nil: there is none.
	following atomic.Pointer[context.CancelFunc]
}

// New returns the elections in a namespace, over connections of its own. It sends no request. The
// configuration may come from rest.InClusterConfig or from package clientcmd. New takes from it the
// server, TLS, credentials, proxies and wrappers. Files with tokens and certificates are read again
// when they change. Rate limits and time limits of the configuration have no effect.
//
// It returns an error if the namespace is empty, or the configuration is not valid.
func New(config *rest.Config, namespace string) (*Store, error) {
	if namespace == "" {
		return nil, errors.New("k8slease: the namespace is empty")
	}
	c, err := newClient(config, namespace)
	if err != nil {
		return nil, fmt.Errorf("k8slease: %w", err)
	}
	s := &Store{client: c}
	s.hub = watches.NewHub(func(*watches.Hub) watches.Follow { return s.follow })
	c.noteDate, c.refused = s.history.noteDate, s.reconnect
	return s, nil
}

// reconnect ends the connections that are not in use, and the watch. A new connection shows the
// present client certificate.
func (s *Store) reconnect() {
	s.renew()
	s.client.http.CloseIdleConnections()
}

// Read returns the state of the cell. The caller may keep the value.
//
// It returns an error that wraps driver.ErrDenied if a right or valid credentials are missing, the
// error of CheckKey, and any other error if the state is not known.
func (s *Store) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := run(ctx, s, key, func() (driver.Entry, error) { return s.read(ctx, key) })
	if err != nil {
		return driver.Entry{}, fmt.Errorf("k8slease: read %s: %w", s.place(key), err)
	}
	return e, nil
}

func (s *Store) read(ctx context.Context, key string) (driver.Entry, error) {
	name, l := Name(key), new(lease)
	before := s.history.before(name)
	err := s.client.call(ctx, http.MethodGet, s.client.path(name, nil), nil, l)
	switch {
	case missing(err):
		return s.readAbsent(ctx, key)
	case err != nil:
		return driver.Entry{}, err
	}
	return s.take(before, key, l)
}

// readAbsent asks for the list of this Lease alone, because it shows the revision of the whole
// store, which is the floor.
func (s *Store) readAbsent(ctx context.Context, key string) (driver.Entry, error) {
	name := Name(key)
	before := s.history.before(name)
	all, err := s.list(ctx, before, url.Values{"fieldSelector": {"metadata.name=" + name}})
	switch {
	case err != nil:
		return driver.Entry{}, err
	case len(all.items) > 0:
		return s.take(before, key, all.items[0])
	}
	return s.history.absent(all.generation, name, all.revision)
}

// take returns what a read of a key has shown.
func (s *Store) take(before baseline, key string, l *lease) (driver.Entry, error) {
	e, restored, err := s.history.read(before, l)
	if restored {
		s.renew()
	}
	if err != nil {
		return driver.Entry{}, err
	}
	return l.as(key, e), nil
}

// listed are Leases at a revision of the store.
type listed struct {
	items                []*lease
	revision, generation uint64
}

// list returns the present Leases. Without a resourceVersion in the request, the API server answers
// from the present state.
func (s *Store) list(ctx context.Context, before baseline, query url.Values) (listed, error) {
	var answer struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []*lease `json:"items"`
	}
	if err := s.client.call(ctx, http.MethodGet, s.client.path("", query), nil, &answer); err != nil {
		return listed{}, err
	}
	revision, err := parseRevision(answer.Metadata.ResourceVersion)
	if err != nil {
		return listed{}, err
	}
	generation, restored, err := s.history.counted(before, revision)
	if restored {
		s.renew()
	}
	return listed{answer.Items, revision, generation}, err
}

// CompareAndSwap replaces the state of the cell with value if its version is still prev, and
// returns the version of the new state. The caller may reuse the value. It keeps the labels, the
// owners and the annotations of others.
//
// It returns an error that wraps driver.ErrConflict if the version was different, and one that
// wraps driver.ErrDenied if the right to write or valid credentials are missing. After an error of
// CheckKey nothing was sent. Any other error leaves open whether the value was or will be written.
func (s *Store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	own := bytes.Clone(value) // the call may outlast its context
	v, err := run(ctx, s, key, func() (driver.Version, error) { return s.swap(ctx, key, prev, own) })
	if err != nil {
		return "", fmt.Errorf("k8slease: compare and swap %s: %w", s.place(key), err)
	}
	return v, nil
}

// errForeign is the error of a write that would change another elector's Lease and keep its leader,
// such as a request.
var errForeign = errors.New("the leader is not a member of this election but another elector, such as " +
	"client-go's, which cannot be asked to hand over")

func (s *Store) swap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if isForeign(value) {
		return "", errForeign
	}
	from, method, name := &lease{name: Name(key)}, http.MethodPost, ""
	if prev != "" {
		var err error
		if from, err = s.present(ctx, key, prev); err != nil {
			return "", err
		}
		if err = from.refuses(key); err != nil {
			return "", err
		}
		if from.uid == "" { // without it the server would take a write from any version
			return "", errors.New("the Lease has no uid, as it has in Kubernetes")
		}
		method, name = http.MethodPut, from.name
	}
	before, to, got := s.history.before(from.name), from.with(key, value, time.Now()), new(lease)
	err := s.client.call(ctx, method, s.client.path(name, nil), to, got)
	switch {
	case prev != "" && missing(err):
		return "", fmt.Errorf("%w: %w", driver.ErrConflict, err)
	case err != nil:
		return "", err
	case !got.same(to):
		return "", errors.New("the Lease is not as it was written: an admission webhook of the cluster changes it")
	}
	restored, err := s.history.wrote(before, got)
	if restored {
		s.renew()
	}
	return got.version(), err
}

// present returns the Lease in a version. It reads the Lease if this process has not seen that
// version last.
func (s *Store) present(ctx context.Context, key string, v driver.Version) (*lease, error) {
	name := Name(key)
	if l := s.history.last(name, v); l != nil {
		return l, nil
	}
	l := new(lease)
	err := s.client.call(ctx, http.MethodGet, s.client.path(name, nil), nil, l)
	switch {
	case missing(err):
		return nil, fmt.Errorf("%w: %w", driver.ErrConflict, err)
	case err != nil:
		return nil, err
	case l.version() != v:
		return nil, fmt.Errorf("%w: the Lease has version %s, not %s", driver.ErrConflict, l.version(), v)
	}
	return l, nil
}

// Watch calls see for every later change of the cell until stop is called. All watches of a Store
// share one watch of the namespace. The first one begins it, and the last one ends it. When the
// server ends it, the store lists the Leases and pushes their states.
//
// The context bounds only the set-up. If its deadline comes before, the watch begins without
// pushes, and says so by an entry with Lost. Errors are as for Read. After Close, Watch returns an
// error.
func (s *Store) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err = s.CheckKey(key); err == nil {
		stop, err = s.hub.Watch(ctx, key, see)
	}
	if err != nil {
		return nil, fmt.Errorf("k8slease: watch %s: %w", s.place(key), err)
	}
	return stop, nil
}

// Close ends all watches and the idle connections. Reading and writing still work. Close may be
// called more than once, but not from a function that was given to Watch. It returns nil.
func (s *Store) Close() error {
	s.hub.Close()
	s.client.http.CloseIdleConnections()
	return nil
}

// run calls the API server for a key, and ends with the context.
func run[T any](ctx context.Context, s *Store, key string, call func() (T, error)) (T, error) {
	if err := s.CheckKey(key); err != nil {
		var none T
		return none, err
	}
	return abandon.Run(ctx, &s.calls, call, abandon.NoUndo)
}

// place formats a key for a message.
func (s *Store) place(key string) string {
	return fmt.Sprintf("Lease %.260q in namespace %s", Name(key), s.client.namespace)
}

// MinLease returns 1 s: a Lease has whole seconds.
func (s *Store) MinLease() time.Duration { return time.Second }

// MaxLease returns 1 h, as for any store without a limit of its own.
func (s *Store) MaxLease() time.Duration { return driver.MaxLease }
