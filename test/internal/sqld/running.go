package sqld

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/rig"
)

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
