//go:build integration

package sql

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

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
