package sqld

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/history"
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

	database string
	address  string // in DSN; clients connect through relays to it
	crash    history.Rules
	tick     time.Duration
	extra    *rig.Fault // beside those of the server
	pushes   bool
	// fragile: the server may end when clients vanish, so calm tests cut no connections.
	fragile, calm bool
}

// PostgresSite is a database on PostgreSQL.
func PostgresSite(t testing.TB) Site {
	return onPostgres(StartPostgres(t))
}

func onPostgres(p *Postgres) Site {
	s := Site{
		Server: p, Driver: "pgx", DSN: p.DSN("postgres", "postgres"), Dialect: sqlstore.Postgres(), Placeholder: "$1",
		database: "postgres", address: p.Address(),
	}
	s.extra = &rig.Fault{
		Name: "sessions killed", Why: "an operator ends sessions, and what they acknowledged stays",
		Before: 400 * time.Millisecond, Least: 2 * time.Second, Unknowns: 4,
		Fall: func(t testing.TB, _ *rand.Rand) func() {
			const end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity " +
				"WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
			operator := p.Open(t, "postgres", "postgres")
			// The clients of a run that is over begin no more sessions.
			for ended, last := 0, time.Now(); ended < 20 && time.Since(last) < time.Second; {
				var n int
				must(t, operator.QueryRow(end).Scan(&n))
				if ended += n; n > 0 {
					last = time.Now()
				}
			}
			return func() {}
		},
	}
	return s
}

// PgBouncerSite is a database behind PgBouncer in a mode.
func PgBouncerSite(t testing.TB, mode string) Site {
	s := PostgresSite(t)
	b := StartPgBouncer(t, s.Server.(*Postgres), mode)
	s.DSN, s.address, s.fragile = b.DSN("postgres", "postgres"), b.Address(), true
	s.extra = &rig.Fault{
		Name: "pooler killed", Why: "all connections break, and come back",
		Before: 400 * time.Millisecond, Least: 2 * time.Second, Unknowns: 4, Quick: true,
		Fall: func(t testing.TB, _ *rand.Rand) func() {
			must(t, b.Kill())
			return func() { must(t, b.Start()) }
		},
	}
	return s
}

// MariaDBSite is a database on MariaDB with these settings. InnoDB shows writes before they are
// durable, and may take some back in a crash, unless there is a binary log: docs/sql-rare.md.
func MariaDBSite(t testing.TB, settings ...string) Site {
	t.Helper()
	return onMariaDB(t, StartMariaDB(t, settings...))
}

func onMariaDB(t testing.TB, m *MariaDB) Site {
	t.Helper()
	must(t, execute(m.Open(t, "root", ""), "CREATE DATABASE elections"))
	return Site{
		Server: m, Driver: "mysql", DSN: m.DSN("root", "elections"), Dialect: sqlstore.MySQL(), Placeholder: "?",
		database: "elections", address: m.Address(), crash: history.Rules{Early: true},
	}
}

// SQLiteSite is a new file with a journal in a mode.
func SQLiteSite(t testing.TB, mode string) Site {
	return Site{
		Driver: "sqlite", Dialect: sqlstore.SQLite(), Placeholder: "?", tick: time.Millisecond,
		DSN: "file:" + filepath.Join(t.TempDir(), "elections.db") + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(" + mode + ")&_pragma=synchronous(NORMAL)",
	}
}

// Rigs returns the databases.
func Rigs() []rig.Rig {
	on := func(name string, k rig.Kind, start func(testing.TB) Site) rig.Rig {
		return rig.Rig{Name: name, Kind: k, Start: func(t testing.TB, calm bool) rig.Site {
			s := start(t)
			s.calm = calm
			_, store := s.open(t, s.DSN)
			must(t, store.Create(t.Context()))
			return s
		}}
	}
	behind := func(mode string) func(testing.TB) Site {
		return func(t testing.TB) Site { return PgBouncerSite(t, mode) }
	}
	file := func(mode string) func(testing.TB) Site {
		return func(t testing.TB) Site { return SQLiteSite(t, mode) }
	}
	pushing := func(start func(testing.TB) Site) func(testing.TB) Site {
		return func(t testing.TB) Site {
			s := start(t)
			s.pushes = true
			return s
		}
	}
	all := []rig.Rig{
		on("sqlite", sqliteKind, file("WAL")), on("postgres", postgresKind, PostgresSite),
		on("mariadb", mariaKind, func(t testing.TB) Site { return MariaDBSite(t) }),
		on("pgbouncer", rig.Kind{}, behind("transaction")), on("pgbouncer-sessions", rig.Kind{}, behind("session")),
		on("sqlite-pushes", rig.Kind{}, pushing(file("WAL"))), on("sqlite-pushes-rollback", rig.Kind{}, pushing(file("DELETE"))),
		on("postgres-pushes", rig.Kind{}, pushing(PostgresSite)),
		on("postgres18", rig.Kind{}, newerPostgres), on("postgres18-pushes", rig.Kind{}, pushing(newerPostgres)), on("mariadb11", rig.Kind{}, newerMariaDB),
	}
	all[3].SoakElections = true // the short pass is on the server itself
	for _, i := range []int{4, 6, 8, 9, 10} {
		all[i].Soak = true
	}
	for _, i := range []int{3, 4, 5, 6, 7, 9} {
		all[i].SameClients = true
	}
	all[5].SoakFaults, all[7].SoakFaults = true, true // the short pass is without pushes
	return all
}

// Pool has the connections of one process, without a relay.
func (s Site) Pool(t testing.TB) *sql.DB { return Open(t, s.Driver, s.DSN) }

// open returns a store, and the one within it that does not push.
func (s Site) open(t testing.TB, dsn string) (driver.Store, *sqlstore.Store) {
	t.Helper()
	pool := Open(t, s.Driver, dsn)
	switch {
	case !s.pushes:
		store, err := sqlstore.New(pool, s.Dialect)
		must(t, err)
		return store, store
	case s.Server == nil:
		store, err := sqlstore.NewSQLite(pool)
		must(t, err)
		return store, store.Store
	}
	config, err := pgx.ParseConfig(dsn)
	must(t, err)
	store, err := pgxstore.New(pool, config)
	must(t, err)
	return store, store.Store
}

// Open opens a pool through a relay, or without one.
func (s Site) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	if s.Server == nil || s.fragile && s.calm {
		store, _ := s.open(t, s.DSN)
		return store, nil
	}
	r := rig.Relay(t, "tcp://"+s.address)
	store, _ := s.open(t, strings.Replace(s.DSN, s.address, r.Address(), 1))
	return store, r
}

// Kit removes rows, and drops the table.
func (s Site) Kit(t testing.TB) drivertest.Harness {
	db := s.Pool(t)
	_, store := s.open(t, s.DSN)
	remove := func(ctx context.Context, key string) error {
		_, err := db.ExecContext(ctx, "DELETE FROM tenure WHERE name = "+s.Placeholder, key)
		return err
	}
	h := drivertest.Harness{
		Delete: remove, Purge: remove, FloorTick: max(s.tick, time.Microsecond),
		Recreate: func(ctx context.Context) error {
			if _, err := db.ExecContext(ctx, "DROP TABLE tenure"); err != nil {
				return err
			}
			return store.Create(ctx)
		},
	}
	if s.pushes && s.Server != nil {
		h.Delete, h.Purge = nil, nil // a deletion by hand sends no notification
	}
	return h
}

// Faults returns none for a file.
func (s Site) Faults() []rig.Fault {
	if s.Server == nil {
		return nil
	}
	all := rig.Of(func(*rand.Rand) rig.Server { return s.Server }, 8)
	all[0].Rules = s.crash
	if s.extra != nil {
		all = append([]rig.Fault{*s.extra}, all...)
	}
	for i := range all {
		all[i].Rules.Era = history.EraAtTheEnd
	}
	return all
}

// Restores reports whether there is a server, whose dumps can be restored.
func (s Site) Restores() bool { return s.Server != nil && !s.bare() }

// bare reports whether the server is a PostgreSQL without clients.
func (s Site) bare() bool {
	p, ok := s.Server.(*Postgres)
	return ok && p.programs != ""
}

// Backup dumps the tables.
func (s Site) Backup(t testing.TB) func() {
	server := s.Server.(interface {
		Dump(t testing.TB, database string) []byte
		Restore(t testing.TB, database string, dump []byte)
	})
	dump := server.Dump(t, s.database)
	return func() { server.Restore(t, s.database, dump) }
}

// database says how clients reach a database at an address. A table of SQLite has a file of its
// own.
type database struct {
	driver  string
	dsn     func(address, table string) string
	dialect sqlstore.Dialect
}

var (
	postgres = database{"pgx", func(address, _ string) string { return postgresURL(address) }, sqlstore.Postgres()}
	mariaDB  = database{"mysql", func(address, _ string) string { return "root@tcp(" + address + ")/elections" }, sqlstore.MySQL()}
	// sqlite has the settings of the command.
	sqlite = database{"sqlite", func(dir, table string) string {
		return "file:" + filepath.Join(dir, table) + ".db?_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	}, sqlstore.SQLite()}
)

func postgresURL(address string) string { return "postgres://postgres@" + address + "/postgres" }

// Running is a database for programs.
type Running struct {
	rig.Server
	database
	address string
	end     func()
}

// Addresses returns HOST:PORT, or the directory of files.
func (r Running) Addresses() []string { return []string{r.address} }

// Open opens a pool of connections for the store in a table.
func (r Running) Open(table string) (*sql.DB, *sqlstore.Store, error) {
	db, err := sql.Open(r.driver, r.dsn(r.address, table))
	if err != nil {
		return nil, nil, err
	}
	s, err := sqlstore.New(db, r.dialect, sqlstore.WithTable(table))
	return db, s, err
}

// Create creates a table.
func (r Running) Create(ctx context.Context, table string) error {
	db, s, err := r.Open(table)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return s.Create(ctx)
}

// End kills the server and removes its files.
func (r Running) End() { r.end() }

var postgresKind = rig.Kind{
	Title:  "one PostgreSQL server (Debian's settings) over loopback and a relay for each candidate",
	Polled: true,
	URL:    postgresURL,
	Start: func(context.Context, string) (rig.Running, error) {
		p, err := RunPostgres()
		return Running{p, postgres, p.Address(), p.End}, err
	},
	Connect: postgres.polled,
}

var mariaKind = rig.Kind{
	Title:  "one MariaDB server (its default settings) over loopback and a relay for each candidate",
	Polled: true,
	URL:    func(address string) string { return "mysql://root@" + address + "/elections" },
	Start: func(context.Context, string) (rig.Running, error) {
		m, err := RunMariaDB()
		if err == nil {
			var db *sql.DB
			if db, err = sql.Open("mysql", m.DSN("root", "")); err == nil {
				err = execute(db, "CREATE DATABASE elections")
				_ = db.Close()
			}
		}
		return Running{m, mariaDB, m.Address(), m.End}, err
	},
	Connect: mariaDB.polled,
}

var sqliteKind = rig.Kind{
	Title: "one SQLite file (WAL, synchronous=FULL)", Polled: true, Files: true,
	URL: func(dir string) string { return "sqlite:" + filepath.Join(dir, "elections.db") },
	Start: func(_ context.Context, dir string) (rig.Running, error) {
		return Running{rig.NoServer, sqlite, dir, func() {}}, nil
	},
	Connect: func(c rig.Connector) (rig.Opener, error) {
		return func(_ context.Context, table string) (driver.Store, error) {
			db, err := sql.Open(sqlite.driver, sqlite.dsn(c.Addresses[0], table))
			if err != nil {
				return nil, err
			}
			db.SetMaxOpenConns(4)
			return sqlstore.NewSQLite(db, sqlstore.WithTable(table), sqlstore.WithPristine())
		}, nil
	},
}

// polled connects by one pool of connections.
func (d database) polled(c rig.Connector) (rig.Opener, error) {
	db, err := sql.Open(d.driver, d.dsn(c.Address(), ""))
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(4)
	return func(_ context.Context, table string) (driver.Store, error) {
		return sqlstore.New(db, d.dialect, sqlstore.WithTable(table))
	}, nil
}

// Pushed is PostgreSQL with pushes: one pool of connections, and one connection that listens.
func Pushed() rig.Kind {
	k := postgresKind
	k.Connect = func(c rig.Connector) (rig.Opener, error) {
		cfg, err := pgx.ParseConfig(postgresURL(c.Address()))
		if err != nil {
			return nil, err
		}
		cfg.Tracer = statementCounter(c.Count)
		db := stdlib.OpenDB(*cfg)
		db.SetMaxOpenConns(8)
		db.SetMaxIdleConns(8)
		return func(_ context.Context, table string) (driver.Store, error) {
			return pgxstore.New(db, cfg, sqlstore.WithTable(table))
		}, nil
	}
	return k
}

// statementCounter counts statements by their purpose.
type statementCounter func(kind string)

// TraceQueryStart counts a statement.
func (c statementCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	kind := "ping"
	switch {
	case strings.HasPrefix(data.SQL, "WITH written"):
		kind = "write"
	case strings.Contains(data.SQL, "LEFT JOIN"):
		kind = "read"
	}
	c(kind)
	return ctx
}

// TraceQueryEnd does nothing.
func (statementCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
