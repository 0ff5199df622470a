package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// SQLiteStore is the elections in one table of a file of SQLite, with pushes: the next leader
// starts as soon as the old one has released, or when its lease has expired. It must be made by
// NewSQLite. Its methods may be called from many goroutines.
//
// One goroutine serves all watches of a store. It holds one connection of the pool, without a
// transaction, and asks on it whether the file has changed (PRAGMA data_version). On Linux the
// kernel reports writes to the file (inotify): then it asks within milliseconds, and otherwise
// every 2 s. Elsewhere it asks every 10 ms. It also notices when the file is replaced, renamed or
// removed. Looking takes at most a twentieth of the time, so in a file with thousands of elections
// that change all the time, pushes come later.
//
// The goroutine needs a pool without a limit, or with at least three connections: in a smaller one
// it would take the connection from the writes. There elections poll, and say so
// ([driver.Entry.Lost]). They also poll while the file cannot be used.
type SQLiteStore struct {
	*Store
	hub *hub
}

// NewSQLite returns the elections in a table of a file of SQLite, and pushes changes. See [New] for
// the pool, the table and the errors. Use New(db, SQLite()) for a store that does not push.
//
// In a bubble of testing/synctest, use [WithInterval]: a wait for events of the file system stops
// the bubble's clock.
func NewSQLite(db *sql.DB, opts ...Option) (*SQLiteStore, error) {
	s, err := New(db, SQLite(), opts...)
	if err != nil {
		return nil, err
	}
	set := settings{}
	for _, opt := range opts {
		opt(&set)
	}
	return &SQLiteStore{s, &hub{store: s, every: set.every}}, nil
}

// WithInterval makes the store of [NewSQLite] ask for changes at this interval, and not when the
// system reports a write to the file. Use it in bubbles of testing/synctest, and on a file system
// that does not report writes. Each question costs the process one wake-up. Other stores ignore it.
func WithInterval(every time.Duration) Option {
	return func(set *settings) { set.every = every }
}

// Watch calls see for the present state of the cell and for its changes, until stop is called. It
// makes no call of the database itself. Its error is that of CheckKey.
func (s *SQLiteStore) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err := s.ready(ctx, key); err != nil {
		return nil, fmt.Errorf("sqlstore: watch %s: %w", s.place(key), err)
	}
	return s.hub.watch(key, see), nil
}

var _ driver.Watcher = (*SQLiteStore)(nil)
