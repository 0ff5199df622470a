//go:build integration

package sqld

import (
	"context"
	"database/sql"
	"testing"
	"time"
)

// keeps writes a row and checks that it is still there after these faults of the server.
func keeps(t *testing.T, db *sql.DB, happens ...func() error) {
	t.Helper()
	must(t, execute(db, "CREATE TABLE kept (n integer)"))
	must(t, execute(db, "INSERT INTO kept VALUES (7)"))
	for _, f := range happens {
		must(t, f())
	}
	if got := number(t, db, "SELECT n FROM kept"); got != 7 {
		t.Errorf("read %d, want 7", got)
	}
}

func number(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	must(t, db.QueryRow(query).Scan(&n))
	return n
}

// unanswered checks that a server gives no answer while it is paused.
func unanswered(db *sql.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := db.PingContext(ctx); err == nil {
		return context.Canceled
	}
	return nil
}

func TestPostgresKeepsAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	p := StartPostgres(t)
	db := p.Open(t, "postgres", "postgres")
	keeps(t, db, p.Kill, p.Start, p.Stop, p.Start, p.Pause, func() error { return unanswered(db) }, p.Resume)
}

func TestMariaDBKeepsAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	m := StartMariaDB(t)
	must(t, execute(m.Open(t, "root", ""), "CREATE DATABASE kept"))
	db := m.Open(t, "root", "kept")
	keeps(t, db, m.Kill, m.Start, m.Stop, m.Start, m.Pause, func() error { return unanswered(db) }, m.Resume)
}

func TestStandbyLacksUnreceivedWrites(t *testing.T) {
	t.Parallel()
	p := StartPostgres(t)
	db := p.Open(t, "postgres", "postgres")
	must(t, execute(db, "CREATE TABLE rows (n integer)"))
	s := p.Standby(t)
	s.Separate(t)
	must(t, execute(db, "INSERT INTO rows VALUES (1)"))
	s.Promote(t)
	promoted := s.Open(t, "postgres", "postgres")
	if n := number(t, promoted, "SELECT count(*) FROM rows"); n != 0 {
		t.Errorf("the standby has %d rows, want 0", n)
	}
	must(t, execute(promoted, "INSERT INTO rows VALUES (2)"))
}

func TestPgBouncerPassesQueries(t *testing.T) {
	t.Parallel()
	p := StartPostgres(t)
	for _, mode := range []string{"session", "transaction"} {
		b := StartPgBouncer(t, p, mode)
		db := Open(t, "pgx", b.DSN("postgres", "postgres"))
		if n := number(t, db, "SELECT 7"); n != 7 {
			t.Errorf("%s: read %d, want 7", mode, n)
		}
		must(t, b.Kill())
		must(t, b.Start())
		if n := number(t, db, "SELECT 8"); n != 8 {
			t.Errorf("%s: read %d, want 8", mode, n)
		}
	}
}
