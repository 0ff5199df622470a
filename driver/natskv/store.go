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
	_ driver.Store        = (*Store)(nil)
	_ driver.Watcher      = (*Store)(nil)
	_ driver.Bounded      = (*Store)(nil)
	_ driver.LeaseLimiter = (*Store)(nil)
	_ driver.Inspector    = (*Store)(nil)
)

// Store is a bucket of elections. It must be made by Open, FromKeyValue or FromLegacyKeyValue. Its
// methods may be called from many goroutines. It holds nothing that needs Close but its watches,
// and its connection if that is its own.
type Store struct {
	cells cells
	calls *abandon.Calls
	hub   *hub
	conn  *connection.Conn // nil: a handle hides it
}

// cells is one way of reaching a bucket: bucket over a connection, handle over a client's handle that
// hides its connection. Methods may take longer than their contexts allow.
type cells interface {
	driver.Store
	source
	survey(ctx context.Context) (survey, error)
	bucket() string
}

func newStore(c cells) *Store {
	under := &abandon.Calls{}
	return &Store{cells: c, calls: under, hub: newHub(c, under)}
}

// Read returns the state of the cell. Its value is the caller's to keep.
//
// It returns an error that wraps driver.ErrDenied if a right is missing (never from a store made by
// FromKeyValue or FromLegacyKeyValue, which cannot tell), that of CheckKey, and any other error if
// the state is not known.
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

// CompareAndSwap replaces the state of the cell by value if its version still is prev, and returns
// the version of what it wrote. The value is the caller's to reuse.
//
// It returns an error that wraps driver.ErrConflict if the version was another, and one that wraps
// driver.ErrDenied if the right to write the key is missing (with the exception that Read has).
// After an error of CheckKey nothing was sent. Any other error leaves open whether the value was or
// will be written.
func (s *Store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	own := bytes.Clone(value) // the call may go on after its context, when the caller uses the value for something else
	version, err := abandon.Run(ctx, s.calls, func() (driver.Version, error) {
		return s.cells.CompareAndSwap(ctx, key, prev, own)
	}, abandon.NoUndo)
	if err != nil {
		return "", fmt.Errorf("natskv: compare and swap %s in bucket %s: %w", key, s.cells.bucket(), err)
	}
	return version, nil
}

// Watch calls see for every later change of the cell, in their order, until stop is called. It does
// not call it for the present state. All watches of a Store share one consumer of the stream, made
// by the first of them and gone after the last; between changes the server sends a heartbeat every
// 2 s and is asked for nothing. When the consumer, its server or the connection is lost, a new one
// resumes where the old one stopped.
//
// The context bounds the set-up alone. Errors are as for Read, and one after Close.
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

// Close ends all watches and waits for the goroutine behind them. A connection made by
// OwnConnection is closed, which may take as long as connecting while the library tries that. Any
// other is left alone, and reading and writing still work. Close may be called more than once, but
// not from a function that was given to Watch. It returns nil.
func (s *Store) Close() error {
	s.hub.close()
	if s.conn != nil {
		s.conn.Close()
	}
	return nil
}
