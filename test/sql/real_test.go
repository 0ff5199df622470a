//go:build integration

package sql

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// site is a database on its own server.
type site struct {
	sqld.Site
	name string
}

// eachSite runs a test on each database server, and behind a pooler.
func eachSite(t *testing.T, test func(t *testing.T, s site)) {
	for name, start := range map[string]func(testing.TB) sqld.Site{
		"postgres":  sqld.PostgresSite,
		"pgbouncer": func(t testing.TB) sqld.Site { return sqld.PgBouncerSite(t, "transaction") },
		"mariadb":   func(t testing.TB) sqld.Site { return sqld.MariaDBSite(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, site{start(t), name})
		})
	}
}

// TestRealConformanceWithSettings: users share the pools of their services, with their settings.
func TestRealConformanceWithSettings(t *testing.T) {
	settings := map[string][]string{
		"postgres": {
			"?default_transaction_isolation=serializable", "?default_transaction_isolation=repeatable%20read",
			"?default_query_exec_mode=simple_protocol", "?default_query_exec_mode=exec", "?timezone=Asia/Kolkata",
		},
		"mariadb": {
			"?tx_isolation=%27SERIALIZABLE%27", "?sql_mode=%27ANSI%27", "?clientFoundRows=true&interpolateParams=true",
			"?time_zone=%27%2B05:00%27",
		},
	}
	eachSite(t, func(t *testing.T, s site) {
		for _, query := range settings[s.name] {
			t.Run(query, func(t *testing.T) {
				drivertest.Run(t, func(t testing.TB) drivertest.Harness {
					db := sqld.Open(t, s.Driver, s.DSN+query)
					h := actions(db, open(t, db, s.Dialect), s.Placeholder)
					h.FloorTick, h.Rounds = time.Microsecond, 5
					return h
				})
			})
		}
	})
}

func TestRealFarFloorEndsNoElection(t *testing.T) {
	eachSite(t, func(t *testing.T, s site) {
		db := s.Pool(t)
		open(t, db, s.Dialect)
		for _, floor := range farFloors {
			run(t, db, "DELETE FROM tenure")
			survivesFarFloor(t, db, func() driver.Store { return over(t, s.Pool(t), s.Dialect) }, time.Second, floor)
		}
	})
}

// twins are two databases with one name, on two servers.
func twins(t *testing.T, one, other *sql.DB, dialect sqlstore.Dialect) {
	t.Helper()
	a, b := open(t, one, dialect), open(t, other, dialect)
	_, err := a.CompareAndSwap(t.Context(), "k", "", []byte("a"))
	must(t, err)
	here, err := a.Read(t.Context(), "k")
	must(t, err)
	there, err := b.Read(t.Context(), "k")
	must(t, err)
	if here.Era == there.Era || here.Era == 0 || there.Era == 0 {
		t.Errorf("eras %d and %d", here.Era, there.Era)
	}
	_, err = b.CompareAndSwap(t.Context(), "k", "", []byte("b"))
	must(t, err)
	if _, err := b.CompareAndSwap(t.Context(), "k", here.Version, []byte("a")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a version of the other server: got %v, want a conflict", err)
	}
}

func TestRealTwinsAreTwoEras(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		p, q := sqld.StartPostgres(t), sqld.StartPostgres(t)
		twins(t, p.Open(t, "postgres", "postgres"), q.Open(t, "postgres", "postgres"), sqlstore.Postgres())
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		m, n := sqld.StartMariaDB(t), sqld.StartMariaDB(t)
		run(t, m.Open(t, "root", ""), "CREATE DATABASE app")
		run(t, n.Open(t, "root", ""), "CREATE DATABASE app")
		twins(t, m.Open(t, "root", "app"), n.Open(t, "root", "app"), sqlstore.MySQL())
	})
}

// TestRealEditedRow: a value that was edited is unproven.
func TestRealEditedRow(t *testing.T) {
	eachSite(t, func(t *testing.T, s site) {
		db := s.Pool(t)
		store := open(t, db, s.Dialect)
		_, err := store.CompareAndSwap(t.Context(), "billing", "", []byte("value"))
		must(t, err)
		if e, err := store.Read(t.Context(), "billing"); err != nil || e.Unproven {
			t.Errorf("as it was written: got %+v, %v", e, err)
		}
		run(t, db, "UPDATE tenure SET value = 'not a record'")
		e, err := store.Read(t.Context(), "billing")
		if err != nil || !e.Unproven || string(e.Value) != "not a record" {
			t.Errorf("edited: got %+v, %v", e, err)
		}
	})
}
