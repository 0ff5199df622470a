package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
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
		wary: dialect.recurs && set.era == dialect.era, pool: newConnections(),
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
	if s.pristine && !r.version.Valid {
		r.pristine, err = s.untouched(ctx, c)
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

// PristineHint names WithPristine, unless it is set or does not apply.
func (s *Store) PristineHint() string {
	if s.pristine || s.dialect.untouched == "" {
		return ""
	}
	return "in a file that is certainly new, sqlstore.WithPristine() or ?pristine=true in the URL avoids this wait"
}

// MinLease returns 1 s: a request usually takes some milliseconds, and a stalled disk more.
func (s *Store) MinLease() time.Duration { return time.Second }

// maxKey is the longest key in bytes; MySQL needs a limit for its index.
const maxKey = 255

// CheckKey returns an error unless the key is UTF-8 text of 1 to 255 bytes without control
// characters.
func (s *Store) CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("the key is empty")
	case len(key) > maxKey:
		return fmt.Errorf("key %.40q...: %d bytes, of at most %d", key, len(key), maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("key %q: not UTF-8", key)
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("key %q: control characters are not allowed", key)
	}
	return nil
}

var (
	_ driver.Store         = (*Store)(nil)
	_ driver.Bounded       = (*Store)(nil)
	_ driver.RightsChecker = (*Store)(nil)
	_ driver.Inspector     = (*Store)(nil)
	_ driver.Lister        = (*Store)(nil)

	_ driver.PristineHinter = (*Store)(nil)
)
