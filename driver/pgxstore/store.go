package pgxstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

// Store is the elections in one table of PostgreSQL, with pushes. It must be made by New. Its
// methods may be called from many goroutines. It does not need to be closed: its connection ends
// with the last watch.
type Store struct {
	*sqlstore.Store
	hub *hub
}

// New returns the elections in a table of PostgreSQL. Reads and writes use the pool db, which stays
// the caller's. The configuration listen is for the connection that listens. It must name the same
// database, but may name another host or port to bypass a pooler. New sends no request.
//
// Its errors are those of [sqlstore.New], and an error if listen is nil.
func New(db *sql.DB, listen *pgx.ConnConfig, opts ...sqlstore.Option) (*Store, error) {
	if listen == nil {
		return nil, errors.New("pgxstore: the configuration for listening is nil")
	}
	opts = append(opts[:len(opts):len(opts)], sqlstore.WithNotifications())
	s, err := sqlstore.New(db, sqlstore.Postgres(), opts...)
	if err != nil {
		return nil, err
	}
	return &Store{Store: s, hub: newHub(&listener{config: listenerConfig(listen), query: s.ChannelQuery(), db: db})}, nil
}

// Watch calls see for changes of the cell until stop is called. All entries are unverified; one
// without a value only says that there may be a change. The first watch of a store opens the
// connection that listens.
//
// It returns an error that wraps [ErrPooled] if that connection goes through a pooler,
// [ErrElsewhere] if it leads to another database than the pool, the error of CheckKey, and any
// other error if it cannot connect before the context ends.
func (s *Store) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err := s.CheckKey(key); err != nil {
		return nil, err
	}
	stop, err = s.hub.watch(ctx, key, see)
	if err != nil {
		return nil, fmt.Errorf("pgxstore: watch %.200q: %w", key, err)
	}
	return stop, nil
}

var _ driver.Watcher = (*Store)(nil)
