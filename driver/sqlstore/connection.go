package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
)

// connections is how the calls of a store take connections of a pool. If no connection is idle, one
// call at a time asks the pool for one. On an overloaded server, attempts to connect that run side
// by side delay each other, until none succeeds in the time of a call.
type connections struct {
	turn  chan struct{} // is held by the call that asks
	freed chan struct{} // tells a call that waits for its turn that a connection may be idle
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
		if ctx.Err() != nil { // it may have begun after all
			c.drop()
		}
		return err
	}
	c.tx = tx
	if err := write(c); err != nil {
		if tx.Rollback() != nil { // the context has ended, which may interrupt the rollback, too
			c.drop()
		}
		return err
	}
	err = tx.Commit()
	if err != nil {
		c.drop()
	}
	return err
}

// drop closes the connection: a transaction may still be open on it, and must not meet the next
// call.
func (c session) drop() { _ = c.conn.Raw(func(any) error { return sqldriver.ErrBadConn }) }

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

// ErrNoTable reports that the table or its schema does not exist.
var ErrNoTable = errors.New("there is no such table")

// meaning is what an error of the database means for a call.
type meaning int

const (
	unknown       meaning = iota // the outcome is not known
	conflict                     // the statement was undone, or the row is there already
	denied                       // a right is missing
	refused                      // the server lets this user in not at all
	noTLS                        // the server offers no TLS
	noDatabase                   // there is no such database
	noTable                      // there is no such table
	otherLayout                  // the table has other columns
	readOnly                     // the server takes no writes
	noEra                        // the expression of the era cannot be evaluated
	inTransaction                // a transaction is open on the connection
)

// explain turns an error of the database into one of the contract, with the remedy for an operator.
func (s *Store) explain(err error) error {
	var sent *unconfirmedError
	if errors.As(err, &sent) {
		return err // no code of the database makes its outcome certain
	}
	m := s.dialect.means(s.code(err), err.Error())
	remedy := s.dialect.remedies[m]
	switch m {
	case unknown:
		return err
	case inTransaction:
		remedy = "a transaction is open on this connection, so nothing was written; " + s.dialect.unfit
	case conflict:
		return fmt.Errorf("%w: %w", driver.ErrConflict, err)
	case denied, refused:
		return fmt.Errorf("%w: %s: %w", driver.ErrDenied, remedy, err)
	case noTable:
		return fmt.Errorf("%w in this database%s; make it with tenure run --create, Store.Create, or this "+
			"statement:\n%s;\n%w", ErrNoTable, remedy, s.text.create, err)
	case otherLayout:
		return fmt.Errorf("the table has other columns than elections need; name another one, or recreate it "+
			"with this statement:\n%s;\n%w", s.text.create, err)
	case noEra:
		remedy = "this database lacks the functions by which " + s.dialect.name + " identifies a restored or recreated database; set an expression for that with " +
			"sqlstore.WithEra"
	}
	return fmt.Errorf("%s: %w", remedy, err)
}

// code returns the database's code of an error of the drivers that WithCode names.
func code(err error) string {
	var state interface{ SQLState() string } // pgx, lib/pq
	if errors.As(err, &state) {
		return state.SQLState()
	}
	var result interface{ Code() int } // modernc.org/sqlite
	if errors.As(err, &result) {
		return strconv.Itoa(result.Code() & 0xff)
	}
	return codeInField(err)
}

// codeInField finds the codes that go-sql-driver/mysql and mattn/go-sqlite3 have in a field.
func codeInField(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.Indirect(reflect.ValueOf(err))
		if v.Kind() != reflect.Struct {
			continue
		}
		if f := v.FieldByName("Number"); f.IsValid() && f.CanUint() {
			return strconv.FormatUint(f.Uint(), 10)
		}
		if f := v.FieldByName("Code"); f.IsValid() && f.CanInt() {
			return strconv.FormatInt(f.Int()&0xff, 10)
		}
	}
	return ""
}

// unconfirmedError reports that the database acknowledged a write, and that it is not certain that
// the write is committed as it was sent.
type unconfirmedError struct{ cause error }

func (e *unconfirmedError) Error() string { return "the write is not confirmed: " + e.cause.Error() }

func (e *unconfirmedError) Unwrap() error { return e.cause }

// files knows which file of SQLite each connection has open. SQLite keeps its write-ahead log
// beside the path by which a file was opened, and its locks belong to the file. So two candidates
// that use one file by two paths do not see each other's writes, and neither do two that use one
// path, if the file there was replaced in between.
type files struct {
	given string // the path that WithFile names, perhaps with symbolic links; empty: unknown

	mu   sync.Mutex
	seen map[any]openFile // by the driver's connection
	last openFile         // the file of the last connection that was new
}

// openFile is the file that a connection has open. The identity is empty if there is no such file,
// as for a database in memory, or if the system has none.
type openFile struct{ path, identity string }

// maxSeen bounds the memory for connections, which may be closed by now.
const maxSeen = 1000

// identify returns the history of the file that the connection has open. It returns an error if the
// file can be used by another path, or if the path leads to another file by now; then it closes the
// connection.
func (f *files) identify(ctx context.Context, conn *sql.Conn) (string, error) {
	var key any
	if err := conn.Raw(func(c any) error { key = c; return nil }); err != nil {
		return "", err
	}
	file, known := f.recall(key)
	replaced := false
	if !known {
		var err error
		if file, replaced, err = f.meet(ctx, conn, key); err != nil {
			return "", err
		}
	}
	now, links := identity(file.path)
	switch {
	case replaced, now != file.identity, f.leadsElsewhere(file):
		f.forget(key)
		_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn })
		return "", fmt.Errorf("the file %s was replaced, renamed or removed while this process had it open, or a link in its path was changed; "+
			"the next call opens the file that is there now; if this error stays, close the connections of this process that still have the earlier file open, or restart the process", file.path)
	case links > 1:
		return "", fmt.Errorf("the file %s has %d hard links: candidates that open it by different names do not see each other's writes, so two could lead; "+
			"keep one link", file.path, links)
	}
	return history(file), nil
}

// history names the history of a file: its identity and its directory entry. A file that was
// renamed under its leader left the latest writes in the log beside the old name.
func history(file openFile) string {
	dir, _ := identity(filepath.Dir(file.path))
	if file.identity == "" || dir == "" {
		return ""
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(filepath.Base(file.path)))
	return fmt.Sprintf("%s/%s/%x", file.identity, dir, name.Sum64())
}

// leadsElsewhere reports whether the given path leads to another file by now, such as after a
// symbolic link in it was changed.
func (f *files) leadsElsewhere(file openFile) bool {
	if f.given == "" {
		return false
	}
	to, err := filepath.EvalSymlinks(f.given)
	its, _ := identity(to)
	return err != nil || history(openFile{to, its}) != history(file)
}

// opened returns the file of a connection that has not been seen before.
func opened(ctx context.Context, conn *sql.Conn) (openFile, error) {
	var file openFile
	if err := conn.QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&file.path); err != nil {
		return openFile{}, err
	}
	mounted, err := isMountPoint(file.path)
	if err != nil {
		return openFile{}, err
	}
	if mounted {
		return openFile{}, fmt.Errorf("the file %s is itself a mount point: candidates that open it outside of the mount do not see the writes inside, so two could lead; "+
			"mount its directory instead", file.path)
	}
	file.identity, _ = identity(file.path)
	return file, nil
}

// meet returns the file of a connection that is new here. The pool may have opened it long ago, for
// other code. So it reports whether the connection may have an earlier file at this path: one of
// this process still does.
func (f *files) meet(ctx context.Context, conn *sql.Conn, key any) (file openFile, replaced bool, err error) {
	file, err = opened(ctx, conn)
	if err != nil || file.identity == "" {
		return file, false, err
	}
	if replaced, err = hasOpen(file.path, f.former(file)); replaced || err != nil {
		return file, replaced, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = file
	if reflect.TypeOf(key).Comparable() { // else the connection is new in each call
		if f.seen == nil || len(f.seen) >= maxSeen {
			f.seen = map[any]openFile{}
		}
		f.seen[key] = file
	}
	return file, false, nil
}

// former returns the identity of the file that was at the path of this one before, or nothing.
func (f *files) former(file openFile) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last.path != file.path || f.last.identity == file.identity {
		return ""
	}
	return f.last.identity
}

func (f *files) recall(key any) (openFile, bool) {
	if !reflect.TypeOf(key).Comparable() {
		return openFile{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	file, known := f.seen[key]
	return file, known
}

func (f *files) forget(key any) {
	if reflect.TypeOf(key).Comparable() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.seen, key)
	}
}
