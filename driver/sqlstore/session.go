package sqlstore

import (
	"context"
	"database/sql"
	"strings"

	"github.com/tenure-go/tenure/driver/abandon"
)

// session is the connection of one call, or the transaction that the call began on it.
type session struct {
	conn *sql.Conn
	tx   *sql.Tx // nil: there is none
	file string  // the identity of the file of SQLite
}

// on makes one call on one connection. sql.DB itself would send a statement again if the driver
// reports a bad connection, which some do after they have sent it. Some drivers return late after
// the context has ended.
func on[T any](ctx context.Context, s *Store, call func(session) (T, error)) (T, error) {
	return abandon.Run(ctx, &s.calls, func() (T, error) {
		var nothing T
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return nothing, err
		}
		defer func() { _ = conn.Close() }()
		c := session{conn: conn}
		if s.dialect.files {
			if c.file, err = s.files.identify(ctx, conn); err != nil {
				return nothing, err
			}
		}
		return call(c)
	}, abandon.NoUndo)
}

// commit runs a write, and returns its error. If begin is true, it runs in a transaction of its own,
// which is committed unless there is an error.
func (c session) commit(ctx context.Context, begin bool, write func(session) error) error {
	if !begin {
		return write(c)
	}
	tx, err := c.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	c.tx = tx
	if err := write(c); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

func (c session) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	query = c.fill(query)
	if c.tx != nil {
		return c.tx.ExecContext(ctx, query, args...)
	}
	return c.conn.ExecContext(ctx, query, args...)
}

func (c session) queryRow(ctx context.Context, query string, args ...any) Row {
	query = c.fill(query)
	if c.tx != nil {
		return c.tx.QueryRowContext(ctx, query, args...)
	}
	return c.conn.QueryRowContext(ctx, query, args...)
}

// fill puts the identity of the file into a statement.
func (c session) fill(query string) string { return strings.ReplaceAll(query, "{file}", c.file) }
