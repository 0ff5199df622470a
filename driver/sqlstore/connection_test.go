package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/seal"
)

// server is a database and its driver. The driver ignores contexts, except while a connection or an
// answer takes its time.
type server struct {
	// answers gives the result of a statement: rows of one column, and how many rows it wrote.
	answers               func(statement string) (rows []string, written int64, err error)
	connecting, answering atomic.Int64 // time.Durations
	opened, closed        atomic.Int32

	mu   sync.Mutex
	sent []string          // the first words of all statements
	row  []sqldriver.Value // that the last write wrote, as a read selects it
}

// sound is the answers of a server that applies each write.
func sound(string) ([]string, int64, error) { return []string{"era"}, 1, nil }

// Connect gives up with its context.
func (s *server) Connect(ctx context.Context) (sqldriver.Conn, error) {
	if !lasts(ctx, &s.connecting) {
		return nil, ctx.Err()
	}
	s.opened.Add(1)
	return &connection{s}, nil
}

func (s *server) Driver() sqldriver.Driver { return nil }

// lasts waits for a duration, unless that is 0. It reports false if the context has ended before.
func lasts(ctx context.Context, d *atomic.Int64) bool {
	if d.Load() == 0 {
		return true
	}
	select {
	case <-time.After(time.Duration(d.Load())):
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *server) run(statement string) ([]string, int64, error) {
	s.mu.Lock()
	s.sent = append(s.sent, strings.Fields(statement)[0])
	s.mu.Unlock()
	return s.answers(statement)
}

// statements returns the first words of the statements that were sent.
func (s *server) statements() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.sent, " ")
}

type connection struct{ *server }

func (c *connection) Prepare(string) (sqldriver.Stmt, error) { return nil, errors.New("not used") }
func (c *connection) Begin() (sqldriver.Tx, error)           { return nil, errors.New("not used") }
func (c *connection) Close() error                           { c.closed.Add(1); return nil }

func (c *connection) ExecContext(_ context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	_, written, err := c.run(query)
	switch len(args) {
	case 4: // INSERT
		c.stores(args[1].Value, args[2].Value, args[3].Value)
	case 5: // UPDATE
		c.stores(args[0].Value, args[1].Value, args[4].Value)
	}
	return sqldriver.RowsAffected(written), err
}

// QueryContext loses the connection with its context.
func (c *connection) QueryContext(ctx context.Context, query string, _ []sqldriver.NamedValue) (sqldriver.Rows, error) {
	if !lasts(ctx, &c.answering) {
		return nil, sqldriver.ErrBadConn
	}
	rows, _, err := c.run(query)
	if strings.Contains(query, "LEFT JOIN") {
		return &answer{[][]sqldriver.Value{c.stored()}}, err
	}
	var all [][]sqldriver.Value
	for _, r := range rows {
		all = append(all, []sqldriver.Value{r})
	}
	return &answer{all}, err
}

func (s *server) stores(value, stamp, era any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row = []sqldriver.Value{value, stamp, int64(1), era, era, int64(1), false}
}

// stored returns the row as a read selects it.
func (s *server) stored() []sqldriver.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.row == nil {
		return []sqldriver.Value{nil, nil, nil, nil, "era", int64(1), false}
	}
	return s.row
}

// answer is the answer to a query.
type answer struct{ rows [][]sqldriver.Value }

func (a *answer) Columns() []string {
	if len(a.rows) == 0 {
		return []string{"column"}
	}
	return make([]string, len(a.rows[0]))
}

func (a *answer) Close() error { return nil }

func (a *answer) Next(into []sqldriver.Value) error {
	if len(a.rows) == 0 {
		return io.EOF
	}
	copy(into, a.rows[0])
	a.rows = a.rows[1:]
	return nil
}

func (s *server) open(t testing.TB, opts ...Option) (*sql.DB, *Store) {
	db := sql.OpenDB(s)
	t.Cleanup(func() { _ = db.Close() })
	return db, newStore(t, db, Postgres(), opts...)
}

// TestWriteOfUnknownOutcomeIsNotRepeated: some drivers report a bad connection after they have sent
// a statement. If an applied write were sent again, it would come back as a conflict.
func TestWriteOfUnknownOutcomeIsNotRepeated(t *testing.T) {
	for prev, want := range map[driver.Version]string{"": "SELECT INSERT", "stamp era": "UPDATE"} {
		s := &server{answers: func(statement string) ([]string, int64, error) {
			if strings.HasPrefix(statement, "SELECT") {
				return []string{"era"}, 0, nil
			}
			return nil, 0, sqldriver.ErrBadConn
		}}
		_, store := s.open(t)
		_, err := store.CompareAndSwap(t.Context(), "k", prev, []byte("v"))
		if err == nil || errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied) {
			t.Errorf("from version %q: got %v, want an unknown outcome", prev, err)
		}
		if got := s.statements(); got != want {
			t.Errorf("from version %q: sent %s, want %s", prev, got, want)
		}
	}
}

// TestWriteOfNoRowIsAConflict: the one statement has compared and swapped.
func TestWriteOfNoRowIsAConflict(t *testing.T) {
	var written int64
	s := &server{answers: func(string) ([]string, int64, error) { return []string{"era"}, written, nil }}
	_, store := s.open(t)
	for _, prev := range []driver.Version{"", "stamp era"} {
		written = 0
		if _, err := store.CompareAndSwap(t.Context(), "k", prev, []byte("v")); !errors.Is(err, driver.ErrConflict) {
			t.Errorf("no row, from version %q: got %v, want a conflict", prev, err)
		}
		written = 1
		v, err := store.CompareAndSwap(t.Context(), "k", prev, []byte("v"))
		if got := parseVersion(v); err != nil || got.era != "era" || !seal.Unbroken(got.stamp, "k", []byte("v")) {
			t.Errorf("one row, from version %q: got %q, %v", prev, v, err)
		}
	}
}

// The call ends although the driver ignores contexts.
func TestCallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		s := &server{answers: func(string) ([]string, int64, error) { <-hangs; return nil, 0, nil }}
		_, store := s.open(t)
		calls := map[string]func(context.Context) error{
			"read":   func(ctx context.Context) error { _, err := store.Read(ctx, "k"); return err },
			"insert": func(ctx context.Context) error { _, err := store.CompareAndSwap(ctx, "k", "", nil); return err },
			"update": func(ctx context.Context) error { _, err := store.CompareAndSwap(ctx, "k", "a b", nil); return err },
			"rights": func(ctx context.Context) error { return store.CheckRights(ctx, "k") },
			"create": store.Create,
			"inspect": func(ctx context.Context) error {
				_, err := store.Inspect(ctx, time.Minute)
				return err
			},
		}
		for name, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			start := time.Now()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrConflict) {
				t.Errorf("%s: got %v", name, err)
			}
			if d := time.Since(start); d != time.Second {
				t.Errorf("%s: ended after %v, want 1 s", name, d)
			}
			cancel()
		}
		close(hangs)
	})
}

// Nothing is sent for an invalid key or in a context that has ended.
func TestInvalidCallsSendNothing(t *testing.T) {
	s := &server{answers: func(string) ([]string, int64, error) { return nil, 0, nil }}
	_, store := s.open(t)
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the reason")
	cancel(why)
	for _, c := range []struct {
		ctx  context.Context
		key  string
		want string
	}{{t.Context(), "", "the key is empty"}, {ended, "k", "the reason"}} {
		_, read := store.Read(c.ctx, c.key)
		_, swap := store.CompareAndSwap(c.ctx, c.key, "", nil)
		for _, err := range []error{read, swap, store.CheckRights(c.ctx, c.key)} {
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, driver.ErrConflict) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		}
	}
	if got := s.statements(); got != "" {
		t.Errorf("sent %s", got)
	}
}

// TestReadsOfHiddenTransactionsAreRefused: if the server does not show open transactions, a read
// may show a write that is not committed. The probe after it finds the transaction.
func TestReadsOfHiddenTransactionsAreRefused(t *testing.T) {
	for _, open := range []bool{false, true} {
		s := &server{answers: func(statement string) ([]string, int64, error) {
			if open && statement == MySQL().probe {
				return nil, 0, errors.New("a transaction is in progress")
			}
			return nil, 1, nil
		}}
		s.row = []sqldriver.Value{[]byte("v"), "stamp", int64(1), "era", "era", int64(1), true}
		db := sql.OpenDB(s)
		_, err := newStore(t, db, MySQL()).Read(t.Context(), "k")
		if got := s.statements(); (err != nil) != open || got != "SELECT SET" {
			t.Errorf("with an open transaction (%v) the read sends %s and returns %v", open, got, err)
		}
		_ = db.Close()
	}
}

// TestConnectionsThatCannotBeKeys: a driver may wrap its connections in values that no map takes.
func TestConnectionsThatCannotBeKeys(t *testing.T) {
	s := &server{answers: func(string) ([]string, int64, error) { return []string{""}, 0, nil }}
	db := sql.OpenDB(wrapped{s})
	defer func() { _ = db.Close() }()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := new(files).identify(t.Context(), conn); err != nil {
		t.Error(err)
	}
}

type wrapped struct{ *server }

func (w wrapped) Connect(context.Context) (sqldriver.Conn, error) {
	return struct {
		*connection
		labels []string
	}{connection: &connection{w.server}}, nil
}

// These types have the shapes of the drivers' errors.
type (
	stateError  struct{ state, text string } // pgx, lib/pq
	numberError struct {                     // go-sql-driver/mysql
		Number  uint16
		Message string
	}
	resultError struct { // modernc.org/sqlite
		result int
		text   string
	}
	result    int
	codeError struct { // mattn/go-sqlite3
		Code result
		text string
	}
)

func (e *stateError) Error() string    { return e.text }
func (e *stateError) SQLState() string { return e.state }
func (e *numberError) Error() string   { return e.Message }
func (e *resultError) Error() string   { return e.text }
func (e *resultError) Code() int       { return e.result }
func (e codeError) Error() string      { return e.text }

func TestCodeOfDrivers(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&stateError{"42P01", ""}, "42P01"},
		{&numberError{1146, ""}, "1146"},
		{&resultError{8, ""}, "8"},
		{&resultError{8 | 5<<8, ""}, "8"}, // an extended code
		{codeError{8, ""}, "8"},
		{&codeError{8 | 5<<8, ""}, "8"},
		{errors.New("refused"), ""},
		{struct{ error }{errors.New("a struct")}, ""},
	} {
		for _, err := range []error{c.err, fmt.Errorf("connect: %w", c.err)} {
			if got := code(err); got != c.want {
				t.Errorf("%#v: got %q, want %q", err, got, c.want)
			}
		}
	}
}

// TestErrorNamesTheRemedy: the remedy uses the terms of the database, and follows its own text.
func TestErrorNamesTheRemedy(t *testing.T) {
	state := func(code, text string) error { return &stateError{code, text} }
	number := func(n uint16) error { return &numberError{n, "server's words"} }
	lite := func(code int, text string) error { return &resultError{code, text} }
	postgres, mysql, sqlite := Postgres(), MySQL(), SQLite()
	for _, c := range []struct {
		dialect  Dialect
		err      error
		sentinel error // nil: the outcome is unknown
		want     string
	}{
		{postgres, state("40001", "could not serialize"), driver.ErrConflict, ""},
		{postgres, state("40P01", "deadlock"), driver.ErrConflict, ""},
		{postgres, state("42501", "permission denied"), driver.ErrDenied, "USAGE on the schema, and SELECT on the table"},
		{postgres, state("28P01", "wrong password"), driver.ErrDenied, "PGPASSFILE"},
		{postgres, state("28000", "no entry"), driver.ErrDenied, "pg_hba.conf"},
		{postgres, state("08P01", "SASL authentication failed"), driver.ErrDenied, "PGPASSWORD"},
		{postgres, state("08P01", "protocol violation"), nil, ""},
		{postgres, errors.New("tls error: server refused TLS connection"), nil, "sslmode=prefer"},
		{postgres, state("3D000", "no database"), nil, "CREATE DATABASE"},
		{postgres, state("42P01", "no relation"), nil, `CREATE TABLE IF NOT EXISTS "tenure"`},
		{postgres, state("3F000", "no schema"), nil, `CREATE TABLE IF NOT EXISTS "tenure"`},
		{postgres, state("42703", "no column"), nil, "other columns"},
		{postgres, state("42P10", "no unique constraint"), nil, "other columns"},
		{postgres, state("25006", "read-only transaction"), nil, "connect to the primary"},
		{postgres, state("55000", "recovery is in progress"), nil, "connect to the primary"},
		{postgres, state("42883", "no function"), nil, "sqlstore.WithEra"},
		{postgres, state("0A000", "cached plan must not change result type"), nil, ""},
		{postgres, state("57P01", "terminated"), nil, ""},
		{postgres, state("53100", "disk full"), nil, ""},
		{mysql, number(1062), driver.ErrConflict, ""},
		{mysql, number(1213), driver.ErrConflict, ""},
		{mysql, number(1205), driver.ErrConflict, ""},
		{mysql, number(1142), driver.ErrDenied, "SELECT on the table, to a candidate INSERT and UPDATE"},
		{mysql, number(1045), driver.ErrDenied, "REQUIRE SSL"},
		{mysql, number(3159), driver.ErrDenied, "require_secure_transport"},
		{mysql, errors.New("TLS requested but server does not support TLS"), nil, "ssl_cert"},
		{mysql, number(1046), nil, "name the database"},
		{mysql, number(1049), nil, "CREATE DATABASE"},
		{mysql, number(1146), nil, "CREATE TABLE IF NOT EXISTS `tenure`"},
		{mysql, number(1054), nil, "other columns"},
		{mysql, number(1406), nil, "other columns"},
		{mysql, number(1290), nil, "connect to the primary"},
		{mysql, number(1193), nil, "sqlstore.WithEra"},
		{mysql, number(1317), nil, ""},
		{sqlite, lite(3, "access permission denied"), driver.ErrDenied, "let this user"},
		{sqlite, lite(14, "unable to open database file"), nil, "check the path"},
		{sqlite, lite(26, "file is not a database"), nil, "check the path"},
		{sqlite, lite(1, "no such table: tenure"), nil, `CREATE TABLE IF NOT EXISTS "tenure"`},
		{sqlite, lite(1, "no such column: t.value"), nil, "other columns"},
		{sqlite, lite(1, "ON CONFLICT clause does not match"), nil, "other columns"},
		{sqlite, lite(1|2<<8, "missing collating sequence"), nil, ""},
		{sqlite, lite(8, "readonly database"), nil, "mode=ro"},
		{sqlite, lite(5, "database is locked"), nil, ""},
	} {
		got := newStore(t, &sql.DB{}, c.dialect).explain(c.err)
		for _, sentinel := range []error{driver.ErrConflict, driver.ErrDenied} {
			if errors.Is(got, sentinel) != errors.Is(c.sentinel, sentinel) {
				t.Errorf("%s: %v: got %v, want one that wraps %v", c.dialect.name, c.err, got, c.sentinel)
			}
		}
		if !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.want) {
			t.Errorf("%s: %v: got %v, want one with %q", c.dialect.name, c.err, got, c.want)
		}
		if unexplained := got.Error() == c.err.Error(); unexplained != (c.sentinel == nil && c.want == "") {
			t.Errorf("%s: %v: got %v", c.dialect.name, c.err, got)
		}
	}
}

func TestWithCode(t *testing.T) {
	s := newStore(t, &sql.DB{}, Postgres(), WithCode(func(err error) string { return strings.TrimPrefix(err.Error(), "sqlstate ") }))
	if err := s.explain(errors.New("sqlstate 42501")); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("got %v, want one that wraps driver.ErrDenied", err)
	}
}

// A server that shuts down may have committed, while it waits for a standby to confirm.
func TestErrorsOfCommits(t *testing.T) {
	for _, c := range []struct {
		dialect Dialect
		code    string
		undone  bool
		why     string
	}{
		{Postgres(), "40001", true, "a serialization failure"},
		{Postgres(), "23503", true, "a deferred constraint"},
		{Postgres(), "P0001", true, "a deferred trigger"},
		{Postgres(), "25P03", true, "the session was idle for too long"},
		{Postgres(), "40003", false, "it says itself that it does not know"},
		{Postgres(), "57P01", false, "the server ends the session, perhaps after the commit"},
		{Postgres(), "08006", false, "the connection is lost"},
		{Postgres(), "58030", false, "an error of the disk"},
		{MySQL(), "1213", true, "a deadlock"},
		{MySQL(), "1205", true, "a lock that was not had in time"},
		{MySQL(), "1053", false, "the server shuts down"},
		{MySQL(), "1180", false, "an error within the commit"},
		{SQLite(), "5", true, "another connection reads"},
		{SQLite(), "10", false, "an error of the disk"},
	} {
		if got := c.dialect.fence.undone(c.code); got != c.undone {
			t.Errorf("%s %s (%s): rolled back %v, want %v", c.dialect.name, c.code, c.why, got, c.undone)
		}
	}
}

// onServer runs a test in a bubble, on a store over a sound server.
func onServer(t *testing.T, run func(*testing.T, *server, *sql.DB, *Store), opts ...Option) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: sound}
		db, store := s.open(t, opts...)
		run(t, s, db, store)
	})
}

// read makes one call within a second.
func read(t *testing.T, s *Store) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := s.Read(ctx, "k")
	return err
}

// TestErrorSaysWhatACallWaitedFor: a busy pool and a server that cannot be reached are not a slow
// server.
func TestErrorSaysWhatACallWaitedFor(t *testing.T) {
	for _, c := range []struct {
		why                   string
		connecting, answering time.Duration
		busy                  bool
		want                  error
		text                  string
	}{
		{"no answer", 0, time.Minute, false, driver.ErrNoAnswer, "no answer from the store within 1s"},
		{"no connection", time.Minute, 0, false, driver.ErrConnecting, "no connection to the store within 1s"},
		{"a busy pool", 0, 0, true, driver.ErrPoolBusy, "no free connection in the pool within 1s: all 1 are in use"},
	} {
		onServer(t, func(t *testing.T, server *server, db *sql.DB, s *Store) {
			db.SetMaxOpenConns(1)
			if c.busy {
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
			}
			server.connecting.Store(int64(c.connecting))
			server.answering.Store(int64(c.answering))
			err := read(t, s)
			if !errors.Is(err, c.want) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: got %v, want %q", c.why, err, c.text)
			}
			for _, other := range []error{driver.ErrNoAnswer, driver.ErrConnecting, driver.ErrPoolBusy} {
				if !errors.Is(c.want, other) && errors.Is(err, other) {
					t.Errorf("%s: %v also wraps %q", c.why, err, other)
				}
			}
			time.Sleep(time.Minute) // for the call that was given up
		})
	}
}

// TestLateAnswerKeepsItsConnection: on an overloaded server opening a connection takes longer than
// a statement. So a statement that was given up ends on its connection, and connecting goes on.
func TestLateAnswerKeepsItsConnection(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, _ *sql.DB, s *Store) {
		server.connecting.Store(int64(2 * time.Second))
		if err := read(t, s); !errors.Is(err, driver.ErrConnecting) {
			t.Errorf("the first call: %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := read(t, s); err != nil {
			t.Errorf("the connection that was opened late is not used: %v", err)
		}
		server.answering.Store(int64(2 * time.Second))
		if err := read(t, s); !errors.Is(err, driver.ErrNoAnswer) {
			t.Errorf("a slow answer: %v", err)
		}
		time.Sleep(2 * time.Second)
		server.answering.Store(0)
		if err := read(t, s); err != nil {
			t.Errorf("after the late answer: %v", err)
		}
		if opened, closed := server.opened.Load(), server.closed.Load(); opened != 1 || closed != 0 {
			t.Errorf("%d connections opened and %d closed, want one that stays", opened, closed)
		}
	})
}

// TestNothingIsSentTooLate: a write that waited until its time was over sends nothing more, whether
// it waited for a connection or for the answer to the read before an insert.
func TestNothingIsSentTooLate(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, db *sql.DB, s *Store) {
		swap := func(prev driver.Version, want error, sent string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.CompareAndSwap(ctx, "k", prev, []byte("v")); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			time.Sleep(time.Second)
			if got := server.statements(); got != sent {
				t.Errorf("sent %q, want %q", got, sent)
			}
		}
		db.SetMaxOpenConns(1)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		swap("stamp era", driver.ErrPoolBusy, "")
		_ = conn.Close()
		synctest.Wait()
		db.SetMaxOpenConns(0)
		server.answering.Store(int64(1500 * time.Millisecond))
		swap("", driver.ErrNoAnswer, "SELECT")
		time.Sleep(time.Minute)
		if got := server.statements(); got != "SELECT" {
			t.Errorf("sent %s", got)
		}
	})
}

// TestReservedConnection: other code of the program uses the whole pool.
func TestReservedConnection(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, db *sql.DB, s *Store) {
		db.SetMaxOpenConns(2)
		if err := read(t, s); err != nil {
			t.Fatal(err)
		}
		other, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan *sql.Conn)
		go func() {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Error(err)
			}
			waited <- conn
		}()
		for range 2 {
			if err := read(t, s); err != nil {
				t.Errorf("beside a busy pool: %v", err)
			}
			time.Sleep(2 * reservedFor)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_ = (<-waited).Close()
		if in := db.Stats().InUse; in != 1 {
			t.Errorf("%d connections are in use after Close, want that of the other code", in)
		}
		_ = other.Close()
	}, WithReservedConnection())
}

// TestReservedConnectionIsExchanged: a reserved connection may lead to a server that has become a
// standby, and no lifetime of the pool ends it.
func TestReservedConnectionIsExchanged(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, db *sql.DB, s *Store) {
		db.SetConnMaxLifetime(time.Minute)
		for i := range 4 {
			if opened := server.opened.Load(); int(opened) != i {
				t.Errorf("%d connections after %d calls with an error or a pause", opened, i)
			}
			if i%2 == 0 {
				time.Sleep(time.Hour)
			} else {
				server.answers = func(string) ([]string, int64, error) { return nil, 0, errors.New("read only") }
				_ = read(t, s)
				time.Sleep(time.Minute + time.Second)
			}
			server.answers = sound
			if err := read(t, s); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}, WithReservedConnection())
}

// TestOneCallConnects: attempts to connect to an overloaded server do not delay each other, and
// each takes its time although the calls are shorter.
func TestOneCallConnects(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, _ *sql.DB, s *Store) {
		server.connecting.Store(int64(4500 * time.Millisecond))
		results := make(chan error, 20)
		for range 4 {
			for range 5 {
				go func() { results <- read(t, s) }()
			}
			for range 5 {
				if err := <-results; !errors.Is(err, driver.ErrConnecting) {
					t.Errorf("got %v", err)
				}
			}
		}
		synctest.Wait()
		if err := read(t, s); err != nil {
			t.Error(err)
		}
		if opened := server.opened.Load(); opened != 1 {
			t.Errorf("%d connections were opened, want one", opened)
		}
	})
}

// TestFreedConnectionGoesToACallThatWaits, although another call is still connecting.
func TestFreedConnectionGoesToACallThatWaits(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, _ *sql.DB, s *Store) {
		server.answering.Store(int64(1500 * time.Millisecond))
		first := make(chan error)
		go func() { first <- read(t, s) }()
		synctest.Wait()
		server.connecting.Store(int64(time.Hour))
		if err := <-first; !errors.Is(err, driver.ErrNoAnswer) {
			t.Fatalf("the first call: %v", err)
		}
		server.answering.Store(0)
		go func() { first <- read(t, s) }() // asks for a connection, in vain
		synctest.Wait()
		if err := read(t, s); err != nil {
			t.Errorf("the connection of the first call is not used: %v", err)
		}
		<-first
		time.Sleep(time.Hour)
	})
}

// TestFullPoolKeepsNoLateStatement: the next call needs the connection of a call that was given up.
func TestFullPoolKeepsNoLateStatement(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, db *sql.DB, s *Store) {
		db.SetMaxOpenConns(1)
		server.answering.Store(int64(time.Hour))
		if err := read(t, s); !errors.Is(err, driver.ErrNoAnswer) {
			t.Errorf("a lost answer: %v", err)
		}
		server.answering.Store(0)
		if err := read(t, s); err != nil {
			t.Errorf("after a lost answer: %v", err)
		}
		time.Sleep(time.Hour)
	})
}
