package pgxstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

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
