// Package sql tests elections in databases: on SQLite within the process, and with the build tag
// integration on real servers.
package sql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"path/filepath"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/electiontest"
	"modernc.org/sqlite"
)

// The clock of SQLite is the one of this process, which is virtual in a bubble.
func init() {
	const unixEpoch = 2440587.5
	sqlite.MustRegisterScalarFunction("julianday", 1, func(*sqlite.FunctionContext, []sqldriver.Value) (sqldriver.Value, error) {
		return unixEpoch + float64(time.Now().UnixMicro())/float64(24*time.Hour/time.Microsecond), nil
	})
}

// openSQLite opens a file as another process would.
func openSQLite(t testing.TB, file string, opts ...sqlstore.Option) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db := poolOfSQLite(t, file)
	return db, open(t, db, sqlstore.SQLite(), opts...)
}

func poolOfSQLite(t testing.TB, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// open returns a store whose table exists.
func open(t testing.TB, db *sql.DB, dialect sqlstore.Dialect, opts ...sqlstore.Option) *sqlstore.Store {
	t.Helper()
	s := over(t, db, dialect, opts...)
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// over returns a store whose table may exist.
func over(t testing.TB, db *sql.DB, dialect sqlstore.Dialect, opts ...sqlstore.Option) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.New(db, dialect, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// actions are those of an operator on the table.
func actions(db *sql.DB, s *sqlstore.Store, placeholder string) drivertest.Harness {
	remove := func(ctx context.Context, key string) error {
		_, err := db.ExecContext(ctx, "DELETE FROM tenure WHERE name = "+placeholder, key)
		return err
	}
	return drivertest.Harness{
		Store: s, Delete: remove, Purge: remove,
		Recreate: func(ctx context.Context) error {
			if _, err := db.ExecContext(ctx, "DROP TABLE tenure"); err != nil {
				return err
			}
			return s.Create(ctx)
		},
	}
}

func sqliteHarness(t testing.TB) drivertest.Harness {
	file := filepath.Join(t.TempDir(), "elections.db")
	db, s := openSQLite(t, file)
	h := actions(db, s, "?")
	_, h.Peer = openSQLite(t, file)
	h.FloorTick = time.Millisecond
	return h
}

func TestSQLiteConformance(t *testing.T) { drivertest.RunInBubbles(t, sqliteHarness) }

func TestSQLiteElections(t *testing.T) { electiontest.RunInBubbles(t, sqliteHarness) }

// must stops a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(context.WithoutCancel(t.Context()), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// member is one candidate.
type member struct {
	*tenure.Election
	leads chan *tenure.Term
	gone  chan struct{} // closed when it has left
}

// joins starts a candidate that leads until the test ends.
func joins(t *testing.T, ctx context.Context, s driver.Store, cfg tenure.Config) *member {
	t.Helper()
	e, err := tenure.New(s, "billing", cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{e, make(chan *tenure.Term, 1), make(chan struct{})}
	go func() {
		defer close(m.gone)
		_ = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			m.leads <- term
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() { <-m.gone })
	return m
}
