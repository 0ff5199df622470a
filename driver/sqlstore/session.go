package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
)

// session is the connection of one call, or the transaction that the call began on it.
type session struct {
	conn *sql.Conn
	tx   *sql.Tx // nil: there is none
	file string  // the identity of the file of SQLite
}

// on makes one call on one connection. sql.DB itself would send a statement again if the driver
// reports a bad connection, which some do after they have sent it.
//
// When ctx ends, on returns, and a statement that was sent goes on for a while in a context of its
// own: a driver closes the connection of a statement that it gives up. On an overloaded server the
// next attempt would have to open one, which takes longer than a statement, and so would time out
// as well. Connecting goes on in the same way. Nothing is sent after ctx has ended.
func on[T any](ctx context.Context, s *Store, call func(context.Context, session) (T, error)) (T, error) {
	at := progress{began: time.Now()}
	v, err := abandon.Run(ctx, &s.calls, func() (nothing T, _ error) {
		late, cancel := outlive(ctx)
		defer cancel()
		conn, done, err := s.connection(late, &at)
		if err != nil {
			return nothing, err
		}
		defer done()
		c := session{conn: conn}
		if s.dialect.files {
			if c.file, err = s.files.identify(late, conn); err != nil {
				return nothing, err
			}
		}
		if err := ctx.Err(); err != nil {
			return nothing, err
		}
		at.step.Store(sent)
		return call(late, c)
	}, abandon.NoUndo)
	return v, at.explain(ctx, err)
}

// afterCancel is how long a call without a deadline goes on after it was canceled.
const afterCancel = 5 * time.Second

// outlive returns a context that lasts three times as long as ctx, so at most three calls that were
// given up hold a connection if an election makes one call at a time.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	alive := context.WithoutCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(alive, end.Add(2*time.Until(end)))
	}
	late, cancel := context.WithCancel(alive)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(afterCancel, cancel) })
	return late, func() { stop(); cancel() }
}

// connection returns the reserved connection if there is one and it is free, else one of the pool,
// and a function that gives it back.
func (s *Store) connection(ctx context.Context, at *progress) (*sql.Conn, func(), error) {
	select {
	case conn := <-s.reserved:
		conn, err := s.reserve(ctx, at, conn)
		if err != nil {
			s.reserved <- nil
			return nil, nil, err
		}
		return conn, func() { s.reserved <- conn }, nil
	default:
		conn, err := at.take(ctx, s.db)
		return conn, func() { _ = conn.Close() }, err
	}
}

// reserve returns the reserved connection, or another one if it is lost or was never opened.
func (s *Store) reserve(ctx context.Context, at *progress, conn *sql.Conn) (*sql.Conn, error) {
	if conn != nil {
		err := conn.Raw(func(c any) error {
			if r, ok := c.(sqldriver.SessionResetter); ok && r.ResetSession(ctx) != nil {
				return sqldriver.ErrBadConn
			}
			if v, ok := c.(sqldriver.Validator); ok && !v.IsValid() {
				return sqldriver.ErrBadConn
			}
			return nil
		})
		if err == nil {
			return conn, nil
		}
		_ = conn.Close()
	}
	return at.take(ctx, s.db)
}

// progress is how far a call has come.
type progress struct {
	began time.Time
	step  atomic.Int32
	most  atomic.Int32 // the connections of the pool, if all are in use
}

// The steps of a call.
const (
	connecting int32 = iota
	queued           // for a connection that other calls use
	sent
)

// take takes a connection from a pool.
func (p *progress) take(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	if stats := db.Stats(); stats.MaxOpenConnections > 0 && stats.InUse >= stats.MaxOpenConnections {
		p.most.Store(int32(stats.MaxOpenConnections))
		p.step.Store(queued)
	}
	return db.Conn(ctx)
}

// explain says in which step the context ended.
func (p *progress) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	took := time.Since(p.began).Round(time.Millisecond)
	switch p.step.Load() {
	case connecting:
		return fmt.Errorf("%w within %v: %w", driver.ErrConnecting, took, err)
	case queued:
		return fmt.Errorf("%w within %v: all %d are in use: %w", driver.ErrPoolBusy, took, p.most.Load(), err)
	}
	return fmt.Errorf("%w within %v: %w", driver.ErrNoAnswer, took, err)
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

// fill puts the identity of the file into a statement.
func (c session) fill(query string) string { return strings.ReplaceAll(query, "{file}", c.file) }
