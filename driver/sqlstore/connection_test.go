package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// server is a database and its driver. The driver ignores contexts.
type server struct {
	// answers gives the result of a statement: rows of one column, and how many rows it wrote.
	answers func(statement string) (rows []string, written int64, err error)

	mu   sync.Mutex
	sent []string          // the first words of all statements
	row  []sqldriver.Value // that the last write wrote, as a read selects it
}

func (s *server) Connect(context.Context) (sqldriver.Conn, error) { return connection{s}, nil }
func (s *server) Driver() sqldriver.Driver                        { return nil }

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

func (c connection) Prepare(string) (sqldriver.Stmt, error) { return nil, errors.New("not used") }
func (c connection) Begin() (sqldriver.Tx, error)           { return nil, errors.New("not used") }
func (c connection) Close() error                           { return nil }

func (c connection) ExecContext(_ context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	_, written, err := c.run(query)
	switch len(args) {
	case 4: // INSERT
		c.stores(args[1].Value, args[2].Value, args[3].Value)
	case 5: // UPDATE
		c.stores(args[0].Value, args[1].Value, args[4].Value)
	}
	return sqldriver.RowsAffected(written), err
}

func (c connection) QueryContext(_ context.Context, query string, _ []sqldriver.NamedValue) (sqldriver.Rows, error) {
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

func (s *server) open(t testing.TB) *Store {
	db := sql.OpenDB(s)
	t.Cleanup(func() { _ = db.Close() })
	return newStore(t, db, Postgres())
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
		_, err := s.open(t).CompareAndSwap(t.Context(), "k", prev, []byte("v"))
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
	store := s.open(t)
	for _, prev := range []driver.Version{"", "stamp era"} {
		written = 0
		if _, err := store.CompareAndSwap(t.Context(), "k", prev, []byte("v")); !errors.Is(err, driver.ErrConflict) {
			t.Errorf("no row, from version %q: got %v, want a conflict", prev, err)
		}
		written = 1
		v, err := store.CompareAndSwap(t.Context(), "k", prev, []byte("v"))
		if got := parseVersion(v); err != nil || got.era != "era" || !sealed(got.stamp, "k", []byte("v")) {
			t.Errorf("one row, from version %q: got %q, %v", prev, v, err)
		}
	}
}

// The call ends although the driver ignores contexts.
func TestCallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		s := &server{answers: func(string) ([]string, int64, error) { <-hangs; return nil, 0, nil }}
		store := s.open(t)
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
	store := s.open(t)
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
		connection
		labels []string
	}{connection: connection(w)}, nil
}
