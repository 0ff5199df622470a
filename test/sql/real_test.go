//go:build integration

package sql

import (
	"database/sql"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// server is a database server that tests do things to.
type server interface {
	Start() error
	Stop() error
	Kill() error
	Pause() error
	Resume() error
}

// site is a database on a server of its own.
type site struct {
	server
	dialect     sqlstore.Dialect
	placeholder string
	pool        func(t testing.TB) *sql.DB // another process has another
	pooled      bool                       // by PgBouncer
}

// sites are the databases under test, each started when it is needed.
var sites = map[string]func(t testing.TB) site{
	"postgres": func(t testing.TB) site {
		p := sqld.StartPostgres(t)
		return site{
			server: p, dialect: sqlstore.Postgres(), placeholder: "$1",
			pool: func(t testing.TB) *sql.DB { return p.Open(t, "postgres", "postgres") },
		}
	},
	"pgbouncer": func(t testing.TB) site {
		p := sqld.StartPostgres(t)
		b := sqld.StartPgBouncer(t, p, "transaction")
		return site{
			server: p, dialect: sqlstore.Postgres(), placeholder: "$1", pooled: true,
			pool: func(t testing.TB) *sql.DB { return sqld.Open(t, "pgx", b.DSN("postgres", "postgres")) },
		}
	},
	"mariadb": func(t testing.TB) site {
		m := sqld.StartMariaDB(t)
		if _, err := m.Open(t, "root", "").ExecContext(t.Context(), "CREATE DATABASE elections"); err != nil {
			t.Fatal(err)
		}
		return site{
			server: m, dialect: sqlstore.MySQL(), placeholder: "?",
			pool: func(t testing.TB) *sql.DB { return m.Open(t, "root", "elections") },
		}
	},
}

func eachSite(t *testing.T, test func(t *testing.T, s site)) {
	for name, start := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
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

func TestRealElections(t *testing.T) {
	eachSite(t, func(t *testing.T, s site) {
		if testing.Short() && s.pooled {
			t.Skip("one pass is on the server itself")
		}
		electiontest.Run(t, s.harness)
	})
}
