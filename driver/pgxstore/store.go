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
	l := &listener{
		config: listenerConfig(listen), query: s.ChannelQuery(), db: db,
		before: func(context.Context, *pgx.ConnConfig) error { return nil },
	}
	return &Store{Store: s, hub: &hub{listener: l}}, nil
}

// BeforeConnect sets a function that is called before each connection that listens, with a copy of
// its configuration to change. Use it for a password or certificates that are replaced while the
// program runs. The pool needs the same function as its own hook: see stdlib.OptionBeforeConnect.
// If the function returns an error, there is no connection, and the store tries again later. Call
// BeforeConnect before the first Watch.
func (s *Store) BeforeConnect(before func(ctx context.Context, config *pgx.ConnConfig) error) {
	s.hub.listener.before = before
}

// Watch calls see for changes of the cell until stop is called. All entries are unverified; one
// without a value only says that there may be a change. The first watch of a store opens the
// connection that listens.
//
// If the deadline of ctx comes while the store connects, the watch begins without notifications,
// and says so by an entry with Lost.
//
// It returns an error that wraps [ErrPooled] if that connection goes through a pooler,
// [ErrElsewhere] if it leads to another database than the pool, the error of CheckKey, and any
// other error if the first attempt to connect fails.
func (s *Store) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err := s.CheckKey(key); err != nil {
		return nil, err
	}
	stop, err = s.hub.watch(ctx, key, see)
	if err != nil {
		return nil, fmt.Errorf("pgxstore: watch %.200q: no notifications come: %w", key, err)
	}
	return stop, nil
}

var _ driver.Watcher = (*Store)(nil)
