// Package pgxstore holds elections in a table of PostgreSQL, as package sqlstore does, and pushes
// changes. Followers of a healthy leader read only once in ten leases, and the next leader starts
// as soon as the old one has released, or when its lease has expired. Use it where pgx is the
// driver.
//
//	config, err := pgx.ParseConfig("postgres://user@host/db")
//	store, err := pgxstore.New(stdlib.OpenDB(*config), config)
//
// # How it pushes
//
// Each write also sends a notification (NOTIFY). One connection listens for all watches of a store,
// however many they are. The first watch opens it, and the last one closes it. The store pings it
// every 30 s, and after 6 s without a notification. It replaces a connection that is lost. Then
// every watch causes one read, because notifications may have been missed. If the first attempt to
// replace it fails, elections poll until one succeeds ([driver.Entry.Lost]).
//
// Every user that may connect to the database can send such notifications, and read them. So they
// only postpone a read or cause one ([driver.Entry.Unverified]): a false one can end no lease and
// cause no claim. Of the notifications of one key, the first 20 in a second reach the election at
// once. If there are more, only the last one reaches it, at the end of the second, and the election
// reads.
//
// # What it needs
//
// The listening connection must reach the server itself. A pooler that gives sessions away by
// transaction, such as PgBouncer, loses notifications, and may leave a LISTEN behind on another
// client's connection. So Watch refuses every pooler before it listens: see [ErrPooled]. Reads and
// writes may go through a pooler.
//
// All members of an election should use this package, or [sqlstore.WithNotifications]. Other
// members do not notify, so listeners read after a silence.
package pgxstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/driver/watches"
)

// Store is the elections in one table of PostgreSQL, with pushes. It must be made by New. Its
// methods may be called from many goroutines. It does not need to be closed: its connection ends
// with the last watch.
type Store struct {
	*sqlstore.Store
	listener *listener
	hub      *watches.Hub
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
	return &Store{s, l, newHub(l)}, nil
}

// BeforeConnect sets a function that is called before each connection that listens, with a copy of
// its configuration to change. Use it for a password or certificates that are replaced while the
// program runs. The pool needs the same function as its own hook: see stdlib.OptionBeforeConnect.
// If the function returns an error, there is no connection, and the store tries again later. Call
// BeforeConnect before the first Watch.
func (s *Store) BeforeConnect(before func(ctx context.Context, config *pgx.ConnConfig) error) {
	s.listener.before = before
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
	stop, err = s.hub.Watch(ctx, key, see)
	if err != nil {
		return nil, fmt.Errorf("pgxstore: watch %.200q: %w", key, err)
	}
	return stop, nil
}

var _ driver.Watcher = (*Store)(nil)

// Beginner begins transactions: a *pgxpool.Pool or a *pgx.Conn, of the database of the fence.
type Beginner interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// DoFenced is [sqlstore.Fence.Do] for a transaction of pgx: it runs work in a transaction, and
// commits it only while no newer term has opened its fence. Open the fence over the same database,
// for example with stdlib.OpenDBFromPool. Errors are as for that method.
func DoFenced(
	ctx context.Context, f *sqlstore.Fence, db Beginner, opts pgx.TxOptions, work func(ctx context.Context, tx pgx.Tx) error,
) error {
	return f.Run(ctx, func(ctx context.Context) (sqlstore.Transaction, func() error, error) {
		tx, err := db.BeginTx(ctx, opts)
		if err != nil {
			return sqlstore.Transaction{}, nil, err
		}
		return sqlstore.Transaction{
			Query: func(ctx context.Context, query string, args ...any) sqlstore.Row {
				return row{tx.QueryRow(ctx, query, args...)}
			},
			Commit:   func(ctx context.Context) error { return committed(tx.Commit(ctx)) },
			Rollback: tx.Rollback,
		}, func() error { return work(ctx, tx) }, nil
	})
}

// committed marks errors of commits that were rolled back.
func committed(err error) error {
	if errors.Is(err, pgx.ErrTxCommitRollback) || errors.Is(err, pgx.ErrTxClosed) {
		return fmt.Errorf("%w: %w", sql.ErrTxDone, err)
	}
	return err
}

// row reports the absence of a row as database/sql does.
type row struct{ pgx.Row }

// Scan reads the row.
func (r row) Scan(dest ...any) error {
	err := r.Row.Scan(dest...)
	if errors.Is(err, pgx.ErrNoRows) {
		return sql.ErrNoRows
	}
	return err
}
