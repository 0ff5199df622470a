//go:build integration

package sql

import (
	"database/sql"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// server is a database server that tests can stop, kill and pause.
type server interface {
	Start() error
	Stop() error
	Kill() error
	Pause() error
	Resume() error
}

// site is a database on its own server.
type site struct {
	server
	name        string
	driver, dsn string
	dialect     sqlstore.Dialect
	placeholder string
	pooled      bool // by PgBouncer
}

// pool has the connections of one process.
func (s site) pool(t testing.TB) *sql.DB { return sqld.Open(t, s.driver, s.dsn) }

// sites are the databases under test, each started when it is needed.
var sites = map[string]func(t testing.TB) site{
	"postgres": func(t testing.TB) site {
		p := sqld.StartPostgres(t)
		return site{
			server: p, driver: "pgx", dsn: p.DSN("postgres", "postgres"), dialect: sqlstore.Postgres(), placeholder: "$1",
		}
	},
	"pgbouncer": func(t testing.TB) site {
		p := sqld.StartPostgres(t)
		b := sqld.StartPgBouncer(t, p, "transaction")
		return site{
			server: p, driver: "pgx", dsn: b.DSN("postgres", "postgres"), dialect: sqlstore.Postgres(), placeholder: "$1",
			pooled: true,
		}
	},
	"mariadb": func(t testing.TB) site { return startMariaDB(t) },
}

// startMariaDB starts a server with a database.
func startMariaDB(t testing.TB, settings ...string) site {
	t.Helper()
	m := sqld.StartMariaDB(t, settings...)
	if _, err := m.Open(t, "root", "").ExecContext(t.Context(), "CREATE DATABASE elections"); err != nil {
		t.Fatal(err)
	}
	return site{
		server: m, driver: "mysql", dsn: m.DSN("root", "elections"), dialect: sqlstore.MySQL(), placeholder: "?",
	}
}

func eachSite(t *testing.T, test func(t *testing.T, s site)) {
	for name, start := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.name = name
			test(t, s)
		})
	}
}

func (s site) harness(t testing.TB) drivertest.Harness {
	db := s.pool(t)
	h := actions(db, open(t, db, s.dialect), s.placeholder)
	h.Peer = open(t, s.pool(t), s.dialect)
	h.FloorTick = time.Microsecond
	return h
}

func TestRealConformance(t *testing.T) {
	eachSite(t, func(t *testing.T, s site) { drivertest.Run(t, s.harness) })
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
					db := sqld.Open(t, s.driver, s.dsn+query)
					h := actions(db, open(t, db, s.dialect), s.placeholder)
					h.FloorTick, h.Rounds = time.Microsecond, 5
					return h
				})
			})
		}
	})
}

func TestRealElections(t *testing.T) {
	eachSite(t, func(t *testing.T, s site) {
		if testing.Short() && s.pooled {
			t.Skip("one pass is on the server itself")
		}
		electiontest.Run(t, s.harness)
	})
}

func TestRealFarFloorEndsNoElection(t *testing.T) {
	eachSite(t, func(t *testing.T, s site) {
		db := s.pool(t)
		open(t, db, s.dialect)
		for _, floor := range farFloors {
			run(t, db, "DELETE FROM tenure")
			survivesFarFloor(t, db, func() driver.Store { return over(t, s.pool(t), s.dialect) }, time.Second, floor)
		}
	})
}
