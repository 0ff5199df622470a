//go:build integration

package sql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver postgres, which hands out sessions with open transactions
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// forgetful returns a pool of one connection, for each driver of PostgreSQL.
func forgetful(t *testing.T, p *sqld.Postgres, name string) *sql.DB {
	t.Helper()
	db := sqld.Open(t, name, p.DSN("postgres", "postgres")+"?sslmode=disable")
	db.SetMaxOpenConns(1)
	return db
}

// TestRealWriteInAnOpenTransaction: a service begins a transaction by SQL text and forgets it. Then
// no write of the store counts, the store believes no uncommitted row, and the transaction of the
// service goes on.
func TestRealWriteInAnOpenTransaction(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	admin := p.Open(t, "postgres", "postgres")
	outside := open(t, admin, sqlstore.Postgres())
	run(t, admin, "CREATE TABLE orders (n int)")
	for _, name := range []string{"postgres", "pgx"} {
		for _, c := range []struct {
			key, begin string
			notify     []sqlstore.Option
		}{
			{"before any write", "BEGIN", nil},
			{"after a write", "BEGIN; INSERT INTO orders VALUES (1)", nil},
			{"in a serializable one", "BEGIN ISOLATION LEVEL SERIALIZABLE", nil},
			{"in a savepoint", "BEGIN; SAVEPOINT s", nil},
			{"with notifications", "BEGIN", []sqlstore.Option{sqlstore.WithNotifications()}},
		} {
			key := name + " " + c.key
			db := forgetful(t, p, name)
			s := over(t, db, sqlstore.Postgres(), c.notify...)
			v, err := s.CompareAndSwap(t.Context(), key, "", []byte("first"))
			must(t, err)
			run(t, db, c.begin)
			for _, prev := range []driver.Version{v, ""} {
				_, err := s.CompareAndSwap(t.Context(), key, prev, []byte("second"))
				if e, outer := outside.Read(t.Context(), key); outer != nil || err == nil && string(e.Value) != "second" {
					t.Errorf("%s: a write is acknowledged, and others read %q, %v", key, e.Value, outer)
				}
			}
			if name == "pgx" {
				continue // it closes such a connection
			}
			if e, err := s.Read(t.Context(), key); err == nil && string(e.Value) == "second" {
				t.Errorf("%s: a read shows a write that is not committed", key)
			} else if err != nil && !strings.Contains(err.Error(), "uncommitted writes is open on this connection") {
				t.Errorf("%s: a read: %v", key, err)
			}
			run(t, db, "INSERT INTO orders VALUES (2)", "COMMIT")
		}
	}
	var orders int
	must(t, admin.QueryRow("SELECT count(*) FROM orders WHERE n = 2").Scan(&orders))
	if orders != 5 {
		t.Errorf("%d of 5 transactions of the service were committed", orders)
	}
}

// TestRealFenceInAnOpenTransaction: a fence that was raised in such a session stands for no other
// one, so an older term could go on to commit.
func TestRealFenceInAnOpenTransaction(t *testing.T) {
	t.Parallel()
	p, m := sqld.StartPostgres(t), sqld.MariaDBSite(t)
	held, _ := term(t, 7, time.Minute)
	for name, c := range map[string]struct {
		db      *sql.DB
		dialect sqlstore.Dialect
	}{
		"postgres": {forgetful(t, p, "postgres"), sqlstore.Postgres()},
		"mariadb":  {m.Pool(t), sqlstore.MySQL()},
	} {
		c.db.SetMaxOpenConns(1)
		_, err := sqlstore.OpenFence(t.Context(), held, c.db, c.dialect, sqlstore.FenceCreate(), sqlstore.FenceName("made"))
		must(t, err)
		run(t, c.db, "BEGIN")
		if _, err := sqlstore.OpenFence(t.Context(), held, c.db, c.dialect); !errors.Is(err, sqlstore.ErrUnfit) {
			t.Errorf("%s: got %v, want one that wraps ErrUnfit", name, err)
		}
	}
}

// TestRealForgottenTransactionEndsTheTerm: the renewals of a leader run in a transaction that its
// process forgot. When the session ends they roll back together, and a follower that waited for the
// row wins at once. By then the leader's term must be over.
func TestRealForgottenTransactionEndsTheTerm(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	open(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const lease = 2 * time.Second
	db := forgetful(t, p, "postgres")
	old := <-joins(t, ctx, over(t, db, sqlstore.Postgres()), tenure.Config{ID: "a", Lease: lease}).leads
	run(t, db, "BEGIN")
	next := joins(t, ctx, over(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres()), tenure.Config{ID: "b", Lease: lease})
	<-old.LeaseContext().Done()
	must(t, db.Close())
	if <-next.leads; old.Err() == nil {
		t.Error("two leaders")
	}
}

// saboteurs are objects of a database that acknowledge an UPDATE of the table and change what it
// writes.
var saboteurs = map[string]map[string][]string{
	"postgres": {
		"a trigger that returns the old row": {
			"CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'",
			"CREATE TRIGGER sabotage BEFORE UPDATE ON tenure FOR EACH ROW EXECUTE FUNCTION sabotage()",
		},
		"a trigger that puts the old row back": {
			"CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF pg_trigger_depth() = 1 THEN UPDATE tenure " +
				"SET value = OLD.value, version = OLD.version WHERE name = OLD.name; END IF; RETURN NULL; END'",
			"CREATE TRIGGER sabotage AFTER UPDATE ON tenure FOR EACH ROW EXECUTE FUNCTION sabotage()",
		},
		"a trigger that changes the value": {
			"CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.value = ''other''; RETURN NEW; END'",
			"CREATE TRIGGER sabotage BEFORE UPDATE ON tenure FOR EACH ROW EXECUTE FUNCTION sabotage()",
		},
		"a view whose trigger does nothing": {
			"ALTER TABLE tenure RENAME TO real_tenure", "CREATE VIEW tenure AS SELECT * FROM real_tenure",
			"CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
			"CREATE TRIGGER sabotage INSTEAD OF UPDATE ON tenure FOR EACH ROW EXECUTE FUNCTION sabotage()",
		},
		"a rule that updates another table": {
			"CREATE TABLE other (LIKE tenure)", "INSERT INTO other SELECT * FROM tenure",
			"CREATE RULE sabotage AS ON UPDATE TO tenure DO INSTEAD UPDATE other SET value = NEW.value WHERE name = NEW.name",
		},
	},
	"mariadb": {
		"a trigger that keeps the version": {
			"CREATE TRIGGER sabotage BEFORE UPDATE ON tenure FOR EACH ROW SET NEW.version = OLD.version, NEW.value = OLD.value",
		},
		"a trigger that changes the value": {
			"CREATE TRIGGER sabotage BEFORE UPDATE ON tenure FOR EACH ROW SET NEW.value = 'other'",
		},
	},
}

// TestRealChangedWritesAreNotConfirmed: the database acknowledges one row, and the row is not as it
// was written.
func TestRealChangedWritesAreNotConfirmed(t *testing.T) {
	t.Parallel()
	p, m := sqld.StartPostgres(t), sqld.MariaDBSite(t)
	for name, objects := range saboteurs {
		for what, statements := range objects {
			var db *sql.DB
			dialect := sqlstore.Postgres()
			if name == "postgres" {
				run(t, p.Open(t, "postgres", "postgres"), "DROP DATABASE IF EXISTS app", "CREATE DATABASE app")
				db = p.Open(t, "postgres", "app")
			} else {
				db, dialect = m.Pool(t), sqlstore.MySQL()
				run(t, db, "DROP TABLE IF EXISTS tenure")
			}
			s := open(t, db, dialect)
			v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
			must(t, err)
			run(t, db, statements...)
			if now, err := s.Read(t.Context(), "k"); err == nil {
				v = now.Version // a view is another table, so another era
			}
			if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("second")); !uncertain(err) {
				t.Errorf("%s, %s: got %v, want an uncertain outcome", name, what, err)
			}
			found, err := s.Inspect(t.Context(), time.Minute)
			must(t, err)
			named := false
			for _, f := range found {
				named = named || strings.Contains(f.Problem, "sabotage") || strings.Contains(f.Problem, "no ordinary table")
			}
			if !named {
				t.Errorf("%s, %s: Inspect finds %v", name, what, found)
			}
			must(t, db.Close())
		}
	}
}

// TestRealUnsafeSessionsAreRefused: a shared pool may have sessions in which a write does not
// commit, or in which a read sees uncommitted data. The store neither writes nor believes anything
// there, whichever expression names the era.
func TestRealUnsafeSessionsAreRefused(t *testing.T) {
	t.Parallel()
	site := sqld.MariaDBSite(t)
	for name, era := range map[string][]sqlstore.Option{"the dialect": nil, "the program": {sqlstore.WithEra("'mine'")}} {
		for _, leak := range []string{
			"BEGIN", "SET SESSION autocommit = 0", "SET SESSION completion_type = 1",
			"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
		} {
			key := leak + ", era of " + name
			db := site.Pool(t)
			db.SetMaxOpenConns(1)
			s := open(t, db, site.Dialect, era...)
			v, err := s.CompareAndSwap(t.Context(), key, "", []byte("first"))
			must(t, err)
			run(t, db, leak)
			if _, err := s.Read(t.Context(), key); err == nil || !strings.Contains(err.Error(), "completion_type = NO_CHAIN") {
				t.Errorf("a read after %s: %v", key, err)
			}
			if _, err := s.CompareAndSwap(t.Context(), key, v, []byte("second")); err == nil {
				t.Errorf("a write after %s is acknowledged", key)
			}
			if e, err := open(t, site.Pool(t), site.Dialect, era...).Read(t.Context(), key); err != nil || string(e.Value) != "first" {
				t.Errorf("after %s others read %q, %v", key, e.Value, err)
			}
		}
	}
}

// TestRealSessionInAnotherDatabase: a session that was left in another database finds a table with
// the same name there.
func TestRealSessionInAnotherDatabase(t *testing.T) {
	t.Parallel()
	site := sqld.MariaDBSite(t)
	db := site.Pool(t)
	db.SetMaxOpenConns(1)
	s := open(t, db, site.Dialect)
	v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
	before, err := s.Read(t.Context(), "k")
	must(t, err)
	run(t, db, "CREATE DATABASE other", "CREATE TABLE other.tenure LIKE tenure", "INSERT INTO other.tenure SELECT * FROM tenure", "USE other")
	if e, err := s.Read(t.Context(), "k"); err != nil || e.Era == before.Era || !e.Unproven {
		t.Errorf("a read elsewhere: %+v, %v", e, err)
	}
	if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("second")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a write elsewhere: %v", err)
	}
}

// TestRealTwinInTheSearchPath: PostgreSQL creates a table in the first schema of the search path,
// and uses one in any of them.
func TestRealTwinInTheSearchPath(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	admin := p.Open(t, "postgres", "postgres")
	run(t, admin, "CREATE SCHEMA svc")
	open(t, admin, sqlstore.Postgres(), sqlstore.WithTable("public.tenure"))
	dsn := p.DSN("postgres", "postgres") + "?search_path=svc,public"
	db := sqld.Open(t, "pgx", dsn)
	db.SetMaxOpenConns(1)
	s := over(t, db, sqlstore.Postgres())
	v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("0"))
	must(t, err)
	for range 8 { // until plans are kept
		v, err = s.CompareAndSwap(t.Context(), "k", v, []byte("again"))
		must(t, err)
	}
	open(t, sqld.Open(t, "pgx", dsn), sqlstore.Postgres())
	var twin bool
	must(t, admin.QueryRow("SELECT to_regclass('svc.tenure') IS NOT NULL").Scan(&twin))
	if twin {
		t.Fatal("Create made a second table")
	}
	run(t, admin, "CREATE TABLE svc.tenure (LIKE public.tenure INCLUDING ALL)")
	if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("in the first table")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a session with kept plans writes to the first table beside the second: %v", err)
	}
	inspect(t, "twins", over(t, sqld.Open(t, "pgx", dsn), sqlstore.Postgres()), map[string]driver.Severity{"search_path": driver.Unsafe})
	found, err := s.Inspect(t.Context(), time.Minute)
	if err != nil || len(found) != 1 {
		t.Errorf("found %v, %v", found, err)
	}
}
