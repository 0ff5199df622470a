package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// connections is how the calls of a store take connections of a pool. If no connection is idle, one
// call at a time asks the pool for one. On an overloaded server, attempts to connect that run side
// by side delay each other, until none succeeds in the time of a call.
type connections struct {
	turn  chan struct{} // is held by the call that asks
	freed chan struct{} // tells a call that waits for its turn that a connection may be idle
}

func newConnections() connections {
	return connections{turn: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
}

// connectWithin is how long an attempt to connect takes at least before it is given up, even if the
// call has ended before: an overloaded server needs seconds for a new connection. The next calls
// use the connection.
const connectWithin = 5 * time.Second

// take takes a connection of the pool.
func (c *connections) take(ctx context.Context, db *sql.DB, at *progress) (*sql.Conn, error) {
	for at.look(db) == 0 {
		select {
		case c.turn <- struct{}{}:
			defer func() { <-c.turn }()
			late, cancel := outlive(ctx, connectWithin)
			defer cancel()
			return db.Conn(late)
		case <-c.freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return db.Conn(ctx)
}

// give gives a connection back to the pool.
func (c *connections) give(conn *sql.Conn) {
	_ = conn.Close()
	select {
	case c.freed <- struct{}{}:
	default:
	}
}

// reserved is the reserved connection, or nothing before it is opened.
type reserved struct {
	conn  *sql.Conn
	taken time.Time // from the pool
}

// reservedFor is how long a connection is reserved before the pool gets it back for a moment, if
// the pool is not full. So the pool's limits on the age of connections hold, which lead to the
// other server after a switch-over.
const reservedFor = time.Minute

// connection returns the reserved connection if there is one and it is free, else one of the pool,
// and a function that gives it back with the error of the call.
func (s *Store) connection(ctx context.Context, at *progress) (*sql.Conn, func(error), error) {
	select {
	case r := <-s.reserved:
		if err := s.reserve(ctx, at, &r); err != nil {
			s.reserved <- reserved{}
			return nil, nil, err
		}
		return r.conn, func(err error) {
			if err != nil && !errors.Is(err, driver.ErrConflict) {
				r.taken = time.Time{} // it may lead to a server that is a standby by now
			}
			s.reserved <- r
		}, nil
	default:
		conn, err := s.pool.take(ctx, s.db, at)
		return conn, func(error) { s.pool.give(conn) }, err
	}
}

// reserve takes a connection from the pool if the reserved one is lost or old, or was never opened.
func (s *Store) reserve(ctx context.Context, at *progress, r *reserved) error {
	if r.conn != nil {
		lost := r.conn.Raw(func(c any) error { return reset(ctx, c) }) != nil
		if !lost && (time.Since(r.taken) < reservedFor || full(s.db.Stats())) {
			return nil
		}
		s.pool.give(r.conn)
	}
	conn, err := s.pool.take(ctx, s.db, at)
	*r = reserved{conn, time.Now()}
	return err
}

// reset does what a pool does before it gives a connection to a caller.
func reset(ctx context.Context, conn any) error {
	if r, ok := conn.(sqldriver.SessionResetter); ok && r.ResetSession(ctx) != nil {
		return sqldriver.ErrBadConn
	}
	if v, ok := conn.(sqldriver.Validator); ok && !v.IsValid() {
		return sqldriver.ErrBadConn
	}
	return nil
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

// look returns how many connections of a pool are idle, and notes what a call waits for if none is.
func (p *progress) look(db *sql.DB) (idle int) {
	stats := db.Stats()
	if full(stats) {
		p.most.Store(int32(stats.MaxOpenConnections))
		p.step.Store(queued)
	}
	return stats.Idle
}

// full reports whether all connections that a pool may have are in use.
func full(p sql.DBStats) bool { return p.MaxOpenConnections > 0 && p.InUse >= p.MaxOpenConnections }

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
