package sqld

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
	_ "modernc.org/sqlite" // the driver sqlite
)

// Site is a database on its own server.
type Site struct {
	// Server is nil for a file.
	rig.Server
	Driver, DSN string
	Dialect     sqlstore.Dialect
	Placeholder string

	address string // in DSN; clients connect through relays to it
	crash   history.Rules
	tick    time.Duration
}

// PostgresSite is a database on PostgreSQL.
func PostgresSite(t testing.TB) Site {
	p := StartPostgres(t)
	return Site{Server: p, Driver: "pgx", DSN: p.DSN("postgres", "postgres"), Dialect: sqlstore.Postgres(), Placeholder: "$1", address: p.Address()}
}

// PgBouncerSite is a database behind PgBouncer in transaction mode. Faults hit the database.
func PgBouncerSite(t testing.TB) Site {
	p := StartPostgres(t)
	b := StartPgBouncer(t, p, "transaction")
	return Site{Server: p, Driver: "pgx", DSN: b.DSN("postgres", "postgres"), Dialect: sqlstore.Postgres(), Placeholder: "$1", address: b.Address()}
}

// MariaDBSite is a database on MariaDB with these settings. InnoDB shows writes before they are
// durable, and may take some back in a crash, unless there is a binary log: docs/sql.md.
func MariaDBSite(t testing.TB, settings ...string) Site {
	t.Helper()
	m := StartMariaDB(t, settings...)
	must(t, execute(m.Open(t, "root", ""), "CREATE DATABASE elections"))
	return Site{
		Server: m, Driver: "mysql", DSN: m.DSN("root", "elections"), Dialect: sqlstore.MySQL(), Placeholder: "?",
		address: m.Address(), crash: history.Rules{Early: true},
	}
}

// SQLiteSite is a new file.
func SQLiteSite(t testing.TB) Site {
	return Site{
		Driver: "sqlite", Dialect: sqlstore.SQLite(), Placeholder: "?", tick: time.Millisecond,
		DSN: "file:" + filepath.Join(t.TempDir(), "elections.db") + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)",
	}
}

// Rigs returns the databases.
func Rigs() []rig.Rig {
	on := func(name string, k rig.Kind, start func(testing.TB) Site) rig.Rig {
		return rig.Rig{Name: name, Kind: k, Start: func(t testing.TB, _ bool) rig.Site {
			s := start(t)
			must(t, s.store(t, s.DSN).Create(t.Context()))
			return s
		}}
	}
	all := []rig.Rig{
		on("sqlite", sqliteKind, SQLiteSite), on("postgres", postgresKind, PostgresSite), on("pgbouncer", rig.Kind{}, PgBouncerSite),
		on("mariadb", mariaKind, func(t testing.TB) Site { return MariaDBSite(t) }),
	}
	all[2].SoakElections = true // the short pass is on the server itself
	return all
}

// Pool has the connections of one process, without a relay.
func (s Site) Pool(t testing.TB) *sql.DB { return Open(t, s.Driver, s.DSN) }

func (s Site) store(t testing.TB, dsn string) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.New(Open(t, s.Driver, dsn), s.Dialect)
	must(t, err)
	return store
}

// Open opens a pool through a relay, or the file.
func (s Site) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	if s.Server == nil {
		return s.store(t, s.DSN), nil
	}
	r, err := relay.New("tcp://" + s.address)
	must(t, err)
	t.Cleanup(r.Close)
	_, address, _ := strings.Cut(r.URL(), "://")
	return s.store(t, strings.Replace(s.DSN, s.address, address, 1)), r
}

// Kit removes rows, and drops the table.
func (s Site) Kit(t testing.TB) drivertest.Harness {
	db, store := s.Pool(t), s.store(t, s.DSN)
	remove := func(ctx context.Context, key string) error {
		_, err := db.ExecContext(ctx, "DELETE FROM tenure WHERE name = "+s.Placeholder, key)
		return err
	}
	return drivertest.Harness{
		Delete: remove, Purge: remove, FloorTick: max(s.tick, time.Microsecond),
		Recreate: func(ctx context.Context) error {
			if _, err := db.ExecContext(ctx, "DROP TABLE tenure"); err != nil {
				return err
			}
			return store.Create(ctx)
		},
	}
}

// Faults returns none for a file.
func (s Site) Faults() []rig.Fault {
	if s.Server == nil {
		return nil
	}
	all := rig.Of(func(*rand.Rand) rig.Server { return s.Server }, 8)
	all[0].Rules = s.crash
	return all
}
