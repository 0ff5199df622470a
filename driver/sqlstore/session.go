package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver/abandon"
)

// session is the connection of one call, or the transaction that the call began on it.
type session struct {
	conn  *sql.Conn
	tx    *sql.Tx      // nil: there is none
	file  string       // the history of the file of SQLite
	ended func() error // why the call has ended, if it has
}

// on makes one call on one connection. sql.DB itself would send a statement again if the driver
// reports a bad connection, which some do after they have sent it.
//
// When ctx ends, on returns, and a statement that was sent goes on for a while in a context of its
// own: a driver closes the connection of a statement that it gives up. On an overloaded server the
// next attempt would have to open one, which takes longer than a statement, and so would time out
// as well. But if the pool has no more connections, the statement is given up, for the next one.
// Connecting goes on in the same way, for longer. No call begins a statement after ctx has ended,
// other than those that confirm or commit the one that it sent before.
func on[T any](ctx context.Context, s *Store, call func(context.Context, session) (T, error)) (T, error) {
	at := progress{began: time.Now()}
	v, err := abandon.Run(ctx, &s.calls, func() (v T, err error) {
		late, cancel := outlive(ctx, 0)
		defer cancel()
		defer context.AfterFunc(ctx, func() {
			if full(s.db.Stats()) {
				cancel()
			}
		})()
		conn, done, err := s.connection(ctx, &at)
		if err != nil {
			return v, err
		}
		defer func() { done(err) }()
		c := session{conn: conn, ended: ctx.Err}
		if s.dialect.files {
			if c.file, err = s.files.identify(late, conn); err != nil {
				return v, err
			}
		}
		if err := ctx.Err(); err != nil {
			return v, err
		}
		at.step.Store(sent)
		return call(late, c)
	}, abandon.NoUndo)
	return v, at.explain(ctx, err)
}

// afterCancel is how long a call without a deadline goes on after it was canceled.
const afterCancel = 5 * time.Second

// outlive returns a context that lasts three times as long as ctx, but at least the time least. An
// election makes one call at a time, so at most three of its calls that were given up hold a
// connection.
func outlive(ctx context.Context, least time.Duration) (context.Context, context.CancelFunc) {
	alive := context.WithoutCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		return context.WithTimeout(alive, max(3*time.Until(end), least))
	}
	late, cancel := context.WithCancel(alive)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(afterCancel, cancel) })
	return late, func() { stop(); cancel() }
}

// commit runs a write, and returns its error. If begin is true, it runs in a transaction of its
// own, which is committed unless there is an error.
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
	err = tx.Commit()
	if err != nil { // the transaction may still be open, and must not meet the next call
		_ = c.conn.Raw(func(any) error { return sqldriver.ErrBadConn })
	}
	return err
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

// fill puts the history of the file into a statement.
func (c session) fill(query string) string { return strings.ReplaceAll(query, "{file}", c.file) }
