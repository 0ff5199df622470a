package natskv

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
)

var (
	_ driver.Store          = (*Store)(nil)
	_ driver.Watcher        = (*Store)(nil)
	_ driver.Bounded        = (*Store)(nil)
	_ driver.LeaseLimiter   = (*Store)(nil)
	_ driver.Inspector      = (*Store)(nil)
	_ driver.PristineHinter = (*Store)(nil)
)

// Store is a bucket of elections. It must be made by Open, FromKeyValue or FromLegacyKeyValue. Its
// methods may be called from many goroutines. It needs Close only if it has watches or a connection
// of its own.
type Store struct {
	cells cells
	calls *abandon.Calls
	hub   *hub
	conn  *connection.Conn // nil: a handle hides it

	presence *presence // nil: a handle hides the connection
}

// cells is one way to access a bucket: bucket over a connection, handle over a client's handle that
// hides its connection. Methods may take longer than their contexts allow.
type cells interface {
	driver.Store
	source
	survey(ctx context.Context) (survey, error)
	keys(ctx context.Context) ([]string, error)
	bucket() string
}

func newStore(c cells) *Store {
	under := &abandon.Calls{}
	return &Store{cells: c, calls: under, hub: newHub(c, under)}
}

// Read returns the state of the cell. The caller may keep the value.
//
// It returns an error that wraps driver.ErrDenied if a right is missing (never from a store made by
// FromKeyValue or FromLegacyKeyValue, which cannot detect that), the error of CheckKey, and any
// other error if the state is not known.
func (s *Store) Read(ctx context.Context, key string) (driver.Entry, error) {
	if err := checkKey(key); err != nil {
		return driver.Entry{}, err
	}
	e, err := abandon.Run(ctx, s.calls, func() (driver.Entry, error) { return s.cells.Read(ctx, key) }, abandon.NoUndo)
	if err != nil {
		return driver.Entry{}, fmt.Errorf("natskv: read %s in bucket %s: %w", key, s.cells.bucket(), gone(err, s.cells.bucket()))
	}
	return e, nil
}

// CompareAndSwap replaces the state of the cell with value if its version is still prev, and
// returns the version of the new state. The caller may reuse the value.
//
// It returns an error that wraps driver.ErrConflict if the version was different, and one that
// wraps driver.ErrDenied if the right to write the key is missing (with the same exception as
// Read). After an error of CheckKey nothing was sent. Any other error leaves open whether the value
// was or will be written.
func (s *Store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	// The call may outlast its context, and then the caller may already reuse the value.
	own := bytes.Clone(value)
	version, err := abandon.Run(ctx, s.calls, func() (driver.Version, error) {
		return s.cells.CompareAndSwap(ctx, key, prev, own)
	}, abandon.NoUndo)
	if err != nil {
		return "", fmt.Errorf("natskv: compare and swap %s in bucket %s: %w", key, s.cells.bucket(), err)
	}
	return version, nil
}

// Watch calls see for every later change of the cell, in order, until stop is called. It does not
// call it for the present state. All watches of a Store share one consumer of the stream. The first
// watch creates it, and the last one ends it. Between changes the server sends a heartbeat every 2
// s and gets no requests. When the consumer, its server or the connection is lost, a new consumer
// resumes where the old one stopped.
//
// The context bounds only the set-up. Errors are as for Read. After Close, Watch returns an error.
func (s *Store) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	stop, err = s.hub.watch(ctx, key, see)
	if err != nil {
		return nil, fmt.Errorf("natskv: watch %s in bucket %s: %w", key, s.cells.bucket(), err)
	}
	return stop, nil
}

// Close ends all announcements and all watches, and waits for the goroutine behind the watches. It
// closes a connection made by OwnConnection. If the library is connecting at that moment, Close
// waits until it has finished. Over any other connection, which stays open, reading and writing
// still work. Close may be called more than once, but not from a function that was given to Watch.
// It returns nil.
func (s *Store) Close() error {
	s.hub.close()
	s.presence.close()
	if s.conn != nil {
		s.conn.Close()
	}
	return nil
}
