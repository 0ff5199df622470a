// Package sqlstore holds elections in a table of PostgreSQL, MySQL, MariaDB or SQLite. Use it where
// a service has such a database anyway. It works over database/sql with the driver that you choose:
//
//	db, err := sql.Open("pgx", "postgres://user@host/db")
//	store, err := sqlstore.New(db, sqlstore.Postgres())
//
// # What it relies on
//
// A cell is one row. A read is one statement. A compare-and-swap is one statement that commits by
// itself, an UPDATE that names the key and the expected version, and a read of the row on the same
// connection. Only if that read shows the row as it was written, with no transaction open, does the
// write count. The first write of an election is an INSERT, after a read. The writer draws a
// random version of 128 bits for each write. So versions never recur, not even if a standby lost
// writes or a dump was restored. The store never repeats a write whose outcome is unknown.
//
// The row holds the floor of the terms. Each write sets it to one above the larger of its last
// value and the server's clock in microseconds, so terms also grow after the row was removed or
// writes were lost. If the server's clock goes back, the row's floor still rises. Terms can fall
// only if the row is also removed, or replaced by an older one, before the clock has caught up.
//
// # Histories
//
// Each write stores the era, which names the database's history, in the row. If a row is of another
// era than the server, for example after a standby was promoted, every member waits one lease
// before it claims, also one that has just started. A write from a version that was read in another
// era is a conflict. So there is no second leader even if the new primary lacks some writes. No
// lease protects against an old primary that still accepts writes beside the new one: stop the old
// one before the promotion.
//
// Members also wait one lease after a value was changed by hand, without this package.
//
// # Rights
//
// A candidate needs SELECT, INSERT and UPDATE on the table, an observer SELECT alone. In PostgreSQL
// both need USAGE on the schema.
//
// # Limits
//
// The shortest lease is 1 s, and the longest key has 255 bytes. Members poll for changes.
// [NewSQLite] pushes those of SQLite, package pgxstore those of PostgreSQL, and package peer those
// of any database. docs/sql.md has the schema, poolers, replication, tested versions
// and times.
package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/seal"
)

// Store is the elections in one table of a database. It must be made by New. Its methods may be
// called from many goroutines. It needs to be closed only if it has a reserved connection.
type Store struct {
	db      *sql.DB
	dialect Dialect
	table   table
	text    statements
	code    func(error) string
	calls   abandon.Calls
	pool    connections
	files   files // used if the dialect has files
	// reserved has the reserved connection while it is free. Without the option the channel is nil.
	reserved chan reserved
	// wary: eras recur, so the first state of a key in an era may lack later writes. met has an
	// arrival for each key.
	wary bool
	met  sync.Map
	// pristine: the caller vouches that no living candidate knew an earlier table.
	pristine bool
}

// New returns the elections in a table of the database, over a pool of connections that stays the
// caller's. Let the pool have at least two connections, since a call that gets no answer may hold
// one; a few serve thousands of elections. New sends no request. The table is named tenure unless
// [WithTable] names another, and must exist: see [Store.Create].
//
// It returns an error if db is nil, the dialect is not from this package or does not support an
// option, the name of the table is not valid, or the working directory is not known for WithFile.
func New(db *sql.DB, dialect Dialect, opts ...Option) (*Store, error) {
	set := settings{table: "tenure", era: dialect.era, code: code}
	for _, opt := range opts {
		opt(&set)
	}
	name, err := parseTable(set.table)
	switch {
	case db == nil:
		return nil, errors.New("sqlstore: the database is nil")
	case dialect.name == "":
		return nil, errors.New("sqlstore: the dialect is missing; use Postgres, MySQL or SQLite")
	case err != nil:
		return nil, fmt.Errorf("sqlstore: %w", err)
	case set.notify && dialect.notify == "":
		return nil, fmt.Errorf("sqlstore: %s has no notifications; leave WithNotifications out", dialect.name)
	case set.pristine && dialect.untouched == "":
		return nil, fmt.Errorf("sqlstore: %s cannot prove that nothing was ever written to a table; leave WithPristine out", dialect.name)
	}
	s := &Store{
		db: db, dialect: dialect, table: name, text: dialect.render(name, set.era, set.notify), code: set.code,
		wary: dialect.recurs && set.era == dialect.era, pool: connections{turn: make(chan struct{}, 1), freed: make(chan struct{}, 1)},
		pristine: set.pristine,
	}
	if set.file != "" {
		if s.files.given, err = filepath.Abs(set.file); err != nil {
			return nil, fmt.Errorf("sqlstore: %w", err)
		}
	}
	if set.reserved {
		s.reserved = make(chan reserved, 1)
		s.reserved <- reserved{}
	}
	return s, nil
}

// Close gives the reserved connection back to the pool, when the call that uses it has ended. Call
// it when no election uses the store any more. It does nothing without [WithReservedConnection].
func (s *Store) Close() error {
	if s.reserved == nil {
		return nil
	}
	r := <-s.reserved
	s.reserved <- reserved{}
	if r.conn == nil {
		return nil
	}
	return r.conn.Close()
}

// Read returns the state of the cell. The caller may keep the value; if the row's value is longer
// than driver.MaxValue, it is the first driver.MaxValue + 1 bytes. Floor is the larger of the row's
// floor and the server's clock in microseconds.
//
// It returns an error that wraps driver.ErrDenied if rights or valid credentials are missing, the
// error of CheckKey, and any other error if the state is not known: the text names a missing table,
// with the statement that makes it, and a server that is a standby.
func (s *Store) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := s.read(ctx, key)
	if err != nil {
		return driver.Entry{}, fmt.Errorf("sqlstore: read %s: %w", s.place(key), err)
	}
	return e, nil
}

func (s *Store) read(ctx context.Context, key string) (driver.Entry, error) {
	if err := s.ready(ctx, key); err != nil {
		return driver.Entry{}, err
	}
	last := s.lastArrival(key)
	r, err := on(ctx, s, func(ctx context.Context, c session) (row, error) { return s.row(ctx, c, key) })
	if err != nil {
		return driver.Entry{}, s.explain(err)
	}
	e := r.entry(key)
	e.Unproven = e.Unproven || s.wary && s.arrives(key, last, r.era, e.Version)
	return e, nil
}

func (s *Store) row(ctx context.Context, c session, key string) (r row, err error) {
	var now sql.NullString
	err = c.queryRow(ctx, s.text.read, key).
		Scan(&r.value, &r.version, &r.floor, &r.wroteIn, &now, &r.clock, &r.hides)
	r.era = now.String
	if err := cmp.Or(err, s.known(now), r.damaged()); err != nil {
		return r, err
	}
	if s.text.untouched != "" && !r.version.Valid {
		untouched, failed := s.untouched(ctx, c)
		if err = failed; untouched && !s.pristine {
			r.notice = errUntouched
		}
		r.pristine = untouched && s.pristine
	}
	if err != nil || !r.hides {
		return r, err
	}
	// An open transaction would show its own writes, as if they were committed.
	_, err = c.exec(ctx, s.dialect.probe)
	return r, err
}

// CompareAndSwap replaces the state of the cell with value if its version is still prev, and
// returns the version of the new state. The caller may reuse the value. A version that was read in
// another era is a conflict.
//
// It returns an error that wraps driver.ErrConflict if the version was different, or the database
// undid this write because of another write; one that wraps driver.ErrDenied if rights or valid
// credentials are missing; and the error of CheckKey, when nothing was sent. Any other error leaves
// open whether the value was or will be written.
func (s *Store) CompareAndSwap(
	ctx context.Context, key string, prev driver.Version, value []byte,
) (driver.Version, error) {
	v, err := s.swap(ctx, key, prev, value)
	if err != nil {
		return "", fmt.Errorf("sqlstore: compare and swap %s: %w", s.place(key), err)
	}
	return v, nil
}

func (s *Store) swap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := s.ready(ctx, key); err != nil {
		return "", err
	}
	last := s.lastArrival(key)
	value = bytes.Clone(value) // the call may outlive its context
	v, err := on(ctx, s, func(ctx context.Context, c session) (version, error) {
		if prev == "" {
			return s.insert(ctx, c, key, value)
		}
		if era, ok := strings.CutPrefix(string(prev), untouched); ok && s.text.first != "" {
			return s.insertFirst(ctx, c, key, era, value)
		}
		return s.update(ctx, c, key, parseVersion(prev), value)
	})
	if err != nil {
		return "", s.explain(err)
	}
	if s.wary {
		s.arrive(key, last, arrival{v.era, ""})
	}
	return v.version(), nil
}

// ready refuses requests that must not be sent.
func (s *Store) ready(ctx context.Context, key string) error {
	if err := s.CheckKey(key); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// place formats a key for a message.
func (s *Store) place(key string) string {
	return fmt.Sprintf("%.200q in table %s", key, s.table)
}

// MinLease returns 1 s: a request usually takes some milliseconds, and a stalled disk more.
func (s *Store) MinLease() time.Duration { return time.Second }

// MaxLease returns 1 h, as for any store without a limit of its own.
func (s *Store) MaxLease() time.Duration { return driver.MaxLease }

// maxKey is the longest key in bytes; MySQL needs a limit for its index.
const maxKey = 255

// CheckKey returns an error unless the key is UTF-8 text of 1 to 255 bytes without control
// characters.
func (s *Store) CheckKey(key string) error { return driver.CheckText(key, maxKey) }

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Option changes the behavior of New.
type Option func(*settings)

type settings struct {
	table string
	era   string
	code  func(error) string
	// notify: each write notifies.
	notify   bool
	reserved bool
	file     string
	pristine bool
	every    time.Duration
}

// WithTable names the table, as "table" or "schema.table". All statements quote the names, so upper
// case and special characters are kept; a dot always separates. Default: tenure, in the session's
// default schema or search path.
func WithTable(name string) Option {
	return func(set *settings) { set.table = name }
}

// WithReservedConnection keeps one connection of the pool for the elections, so that other code
// that uses the whole pool cannot delay a renewal. The store takes it with its first call, and
// holds one until [Store.Close]. After a minute or an error, unless the pool is full, it gives it
// back and takes one again, so that the pool's limits on the age of connections hold. Calls that
// come while it is in use take other connections of the pool.
func WithReservedConnection() Option {
	return func(set *settings) { set.reserved = true }
}

// WithFile names the file of SQLite by the path that the program was given. If a symbolic link in
// it is changed, calls return an error and close their connections, and the next ones open the file
// to which it leads by then. Without the option, the store goes on in the file that it opened
// first, and a candidate that starts later may lead in the other one. A relative path is resolved
// when New is called. Other databases ignore it.
func WithFile(path string) Option {
	return func(set *settings) { set.file = path }
}

// WithPristine lets the first election in a new table of SQLite begin at once, and not after one
// lease. The caller vouches that no living candidate knew an earlier file of this path, or an
// earlier table in it: a leader of the old one trusts its lease until it notices. The store itself
// proves the rest: the write of the first claim fails if anything was ever written to this table.
// So while candidates may be alive, do not reset sqlite_sequence, as scripts that empty a table do.
// It needs a table that [Store.Create] of this version made; in an older one the option has no
// effect. New returns an error with any other dialect.
func WithPristine() Option {
	return func(set *settings) { set.pristine = true }
}

// WithCode sets the function that returns the database's code from an error of a driver: the
// SQLSTATE for PostgreSQL, the error number for MySQL and MariaDB, the primary result code for
// SQLite, and an empty string for any other error. Without it a store knows the errors of pgx,
// lib/pq, go-sql-driver/mysql, modernc.org/sqlite and mattn/go-sqlite3. After an error without a
// known code the outcome is unknown: that is safe but slower, and the error does not name a missing
// right.
func WithCode(code func(err error) string) Option {
	return func(set *settings) { set.code = code }
}

// WithEra replaces the SQL expression that names the history of the database. Its value must be
// text without spaces, of at most 200 bytes. It must be the same for all writes of one history, and
// differ after the promotion of a standby that may lack the last writes. Every role must be able to
// evaluate it. Use it where the dialect's expression does not work, as in a database that only
// resembles PostgreSQL. Use it also if the era changes too often, since each change costs a wait of
// one lease: for example, where each server of a cluster has its own history. If the expression is
// an empty string in quotes, the store does not distinguish histories.
func WithEra(expression string) Option {
	return func(set *settings) { set.era = expression }
}

// CreateStatement returns the statement that makes the table, for migrations.
func (s *Store) CreateStatement() string { return s.text.create }

// Create makes the table if there is none. For that it needs the right to create tables in the
// schema, which a candidate does not need otherwise. Several processes may call it at once.
//
// It returns an error that wraps driver.ErrDenied if there is no table and rights are missing, and
// any other error if it is not known whether the table exists.
func (s *Store) Create(ctx context.Context) error {
	// PostgreSQL looks in the first schema of the search path alone before it makes a table, but
	// uses one in any of them.
	if _, unreadable := s.read(ctx, "tenure"); unreadable == nil {
		return nil
	}
	_, err := on(ctx, s, func(ctx context.Context, c session) (sql.Result, error) {
		return c.exec(ctx, s.text.create)
	})
	if err == nil {
		return nil
	}
	// The table may be there: another process may have made it at the same moment, or without the
	// right to create one this statement fails in any case.
	if _, unreadable := s.read(ctx, "tenure"); unreadable == nil {
		return nil
	}
	if s.dialect.means(s.code(err), err.Error()) == denied {
		return fmt.Errorf("sqlstore: create table %s: %w: let this user create tables there, or another user run this "+
			"statement:\n%s;\n%w", s.table, driver.ErrDenied, s.text.create, err)
	}
	return fmt.Errorf("sqlstore: create table %s: %w", s.table, s.explain(err))
}

// WithNotifications makes each write notify PostgreSQL's listeners of the new row (NOTIFY), in the
// same statement. Package pgxstore listens for that. Without listeners it costs nothing, but
// PostgreSQL commits such writes one at a time. Set it in all members if any uses pgxstore: a
// listener notices a write without a notification late, by a read after it has heard nothing for a
// while. New returns an error with any other dialect.
func WithNotifications() Option {
	return func(set *settings) { set.notify = true }
}

// ChannelQuery returns the query for the name of the channel of this table's notifications in
// PostgreSQL. Its answer is one row of one text. The name differs between eras, and between
// databases.
func (s *Store) ChannelQuery() string {
	return "SELECT " + postgresChannel + " FROM (" + s.text.era + ") AS now (era)"
}

var errNotification = errors.New("not a notification of sqlstore")

// ParseNotification returns the key in a notification, and the state of the cell according to it.
// The state is Unverified, because every user that may connect to the database can send
// notifications. An error means that only the key can be used.
func ParseNotification(payload string) (key string, e driver.Entry, err error) {
	key, rest, _ := strings.Cut(payload, "\n")
	fields := strings.SplitN(rest, "\n", 4)
	if len(fields) < 4 {
		return key, driver.Entry{}, errNotification
	}
	stamp, wroteIn := fields[0], fields[2]
	floor, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return key, driver.Entry{}, errNotification
	}
	value, err := base64.StdEncoding.DecodeString(fields[3])
	if err != nil || !seal.Unbroken(stamp, key, value) {
		return key, driver.Entry{}, errNotification
	}
	return key, driver.Entry{
		Value: value, Version: version{stamp, wroteIn}.version(), Floor: floor, Ceiling: latest,
		Era: era(wroteIn), Unverified: true,
	}, nil
}

// Keys returns the sorted keys of all rows, by one statement. It leaves out names that CheckKey
// refuses. It needs the same right as Read. Errors are as for Read.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	all, err := on(ctx, s, func(ctx context.Context, c session) ([]string, error) { return s.keys(ctx, c.conn) })
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list the keys in table %s: %w", s.table, s.explain(err))
	}
	slices.Sort(all)
	return all, nil
}

func (s *Store) keys(ctx context.Context, conn *sql.Conn) (all []string, err error) {
	rows, err := conn.QueryContext(ctx, s.text.keys)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		if s.CheckKey(key) == nil {
			all = append(all, key)
		}
	}
	return all, rows.Err()
}

// CheckRights returns an error that wraps driver.ErrDenied if the right to update the table is
// missing, and any other error if there was no answer or the server is read-only. It sends an
// update of no row. It does not check the right to insert: only the first member of an election
// needs that right, or a member that finds the row removed.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	if err := s.ready(ctx, key); err != nil {
		return fmt.Errorf("sqlstore: check the right to write %s: %w", s.place(key), err)
	}
	if _, err := on(ctx, s, func(ctx context.Context, c session) (sql.Result, error) {
		return c.exec(ctx, s.text.rights, key)
	}); err != nil {
		return fmt.Errorf("sqlstore: check the right to write %s: %w", s.place(key), s.explain(err))
	}
	return nil
}
