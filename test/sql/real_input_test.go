//go:build integration

package sql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// mistake is a mistake of an operator, with the remedy that errors name.
type mistake struct {
	name   string
	pool   *sql.DB
	table  string // by default tenure
	want   string
	denied bool   // the error wraps driver.ErrDenied
	works  string // calls that need not fail
}

func check(t *testing.T, dialect sqlstore.Dialect, mistakes []mistake) {
	t.Helper()
	for _, m := range mistakes {
		var opts []sqlstore.Option
		if m.table != "" {
			opts = append(opts, sqlstore.WithTable(m.table))
		}
		for call, err := range calls(t.Context(), over(t, m.pool, dialect, opts...)) {
			switch {
			case strings.Contains(m.works, call) && (err == nil || errors.Is(err, driver.ErrConflict)):
			case err == nil || !strings.Contains(err.Error(), m.want) || errors.Is(err, driver.ErrConflict):
				t.Errorf("%s, %s: got %v, want %q", m.name, call, err, m.want)
			case errors.Is(err, driver.ErrDenied) != m.denied:
				t.Errorf("%s, %s: got %v, want one that wraps driver.ErrDenied: %v", m.name, call, err, m.denied)
			case strings.Contains(err.Error(), "s3cret"):
				t.Errorf("%s, %s: %v shows the password", m.name, call, err)
			}
		}
	}
}

func TestRealMistakesPostgres(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	admin := p.Open(t, "postgres", "postgres")
	open(t, admin, sqlstore.Postgres())
	run(t, admin, "CREATE ROLE guest LOGIN PASSWORD 's3cret'", "GRANT SELECT, INSERT, UPDATE ON tenure TO guest",
		"CREATE ROLE secure LOGIN PASSWORD 's3cret'", "GRANT SELECT, INSERT, UPDATE ON tenure TO secure",
		"CREATE ROLE idle", "CREATE TABLE other (name text PRIMARY KEY, x text)",
		"CREATE TABLE typed (name integer PRIMARY KEY, value text, version text, floor text, era text)",
		"CREATE TABLE loose (name text, value bytea, version text, floor bigint, era text)")
	p.Admit(t, "host all guest 127.0.0.1/32 scram-sha-256", "hostssl all secure 127.0.0.1/32 scram-sha-256")
	as := func(user, database string) *sql.DB { return p.Open(t, user, database) }
	admin = as("postgres", "postgres") // the server was restarted
	check(t, sqlstore.Postgres(), []mistake{
		{name: "no mistake", pool: as("guest:s3cret", "postgres"), works: "read insert update rights"},
		{name: "no table", pool: admin, table: "missing", want: `CREATE TABLE IF NOT EXISTS "missing"`},
		{name: "no schema", pool: admin, table: "missing.tenure", want: `CREATE TABLE IF NOT EXISTS "missing"."tenure"`},
		{name: "no database", pool: as("postgres", "missing"), want: "PGDATABASE"},
		{name: "other columns", pool: admin, table: "other", want: "other columns"},
		{name: "other types", pool: admin, table: "typed", want: "other columns"},
		{name: "name is not unique", pool: admin, table: "loose", want: "other columns", works: "read update rights"},
		{name: "wrong password", pool: as("guest:s3cretwrong", "postgres"), want: "PGPASSWORD", denied: true},
		{name: "no password", pool: as("guest", "postgres"), want: "PGPASSFILE", denied: true},
		{name: "no such role", pool: as("missing", "postgres"), want: "pg_hba.conf", denied: true},
		{name: "no right to log in", pool: as("idle", "postgres"), want: "pg_hba.conf", denied: true},
		{name: "the server requires TLS", pool: as("secure:s3cret", "postgres"), want: "sslmode", denied: true},
		{name: "the client requires TLS", want: "ssl = on",
			pool: sqld.Open(t, "pgx", p.DSN("postgres", "postgres")+"?sslmode=require")},
		{name: "read-only", want: "connect to the primary", works: "read",
			pool: sqld.Open(t, "pgx", p.DSN("postgres", "postgres")+"?default_transaction_read_only=on")},
		{name: "a standby", pool: p.Standby(t).Open(t, "postgres", "postgres"), want: "connect to the primary"},
	})
	refuseCreate(t, as("guest:s3cret", "postgres"), sqlstore.Postgres())
}

// refuseCreate calls Create without the right to create a table.
func refuseCreate(t *testing.T, guest *sql.DB, dialect sqlstore.Dialect) {
	t.Helper()
	s := over(t, guest, dialect, sqlstore.WithTable("another"))
	if err := s.Create(t.Context()); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "CREATE TABLE") {
		t.Errorf("no right to create: got %v", err)
	}
	existing := over(t, guest, dialect)
	must(t, existing.Create(t.Context()))
}

func TestRealMistakesMariaDB(t *testing.T) {
	t.Parallel()
	m := sqld.StartMariaDB(t)
	run(t, m.Open(t, "root", ""), "CREATE DATABASE app", "CREATE USER guest IDENTIFIED BY 's3cret'",
		"GRANT SELECT, INSERT, UPDATE ON app.* TO guest", "CREATE USER secure IDENTIFIED BY 's3cret' REQUIRE SSL")
	admin := m.Open(t, "root", "app")
	open(t, admin, sqlstore.MySQL())
	run(t, admin, "CREATE TABLE other (name varbinary(255) PRIMARY KEY, x text)",
		"CREATE TABLE typed (name integer PRIMARY KEY, value blob, version text, floor bigint, era text)",
		"CREATE TABLE narrow (name varbinary(255) PRIMARY KEY, value blob, version varchar(9), floor bigint, era text)")
	as := func(user, database string) *sql.DB { return m.Open(t, user, database) }
	check(t, sqlstore.MySQL(), []mistake{
		{name: "no mistake", pool: as("guest:s3cret", "app"), works: "read insert update rights"},
		{name: "no table", pool: admin, table: "missing", want: "CREATE TABLE IF NOT EXISTS `missing`"},
		{name: "no schema", pool: admin, table: "missing.tenure", want: "CREATE TABLE IF NOT EXISTS `missing`.`tenure`"},
		{name: "no database", pool: as("root", "missing"), want: "CREATE DATABASE"},
		{name: "no database is named", pool: as("root", ""), want: "name the database"},
		{name: "other columns", pool: admin, table: "other", want: "other columns"},
		{name: "other types", pool: admin, table: "typed", want: "other columns", works: "read update rights"},
		{name: "a short column", pool: admin, table: "narrow", want: "other columns", works: "read update rights"},
		{name: "wrong password", pool: as("guest:s3cretwrong", "app"), want: "user and password", denied: true},
		{name: "no such user", pool: as("missing", "app"), want: "user and password", denied: true},
		{name: "the user requires TLS", pool: as("secure:s3cret", "app"), want: "REQUIRE SSL", denied: true},
		{name: "the client requires TLS", want: "ssl_cert", pool: sqld.Open(t, "mysql", m.DSN("root", "app")+"?tls=true")},
		{name: "read-only transactions", want: "connect to the primary", works: "read",
			pool: sqld.Open(t, "mysql", m.DSN("root", "app")+"?tx_read_only=1")},
	})
	check(t, sqlstore.MySQL(), []mistake{
		{name: "statements do not commit", want: "autocommit = 1", works: "update rights",
			pool: sqld.Open(t, "mysql", m.DSN("root", "app")+"?autocommit=0")},
	})
	refuseCreate(t, as("guest:s3cret", "app"), sqlstore.MySQL())
	run(t, admin, "SET GLOBAL read_only = ON")
	check(t, sqlstore.MySQL(), []mistake{
		{name: "read-only", pool: as("guest:s3cret", "app"), want: "read_only", works: "read"},
	})
	run(t, admin, "SET GLOBAL read_only = OFF", "SET GLOBAL require_secure_transport = ON")
	check(t, sqlstore.MySQL(), []mistake{
		{name: "the server requires TLS", pool: as("guest:s3cret", "app"), want: "require_secure_transport", denied: true},
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

// TestRealEditedRow: a value that was edited is unproven, and foreign bytes are kept.
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
		ctx, cancel := context.WithCancelCause(t.Context())
		candidate, err := tenure.New(store, "billing", tenure.Config{ID: "a", Lease: time.Second, OnEvent: func(e tenure.Event) {
			if e.Kind == tenure.EventAlarm || e.Kind == tenure.EventElected {
				cancel(e.Cause)
			}
		}})
		must(t, err)
		_, err = candidate.Campaign(ctx)
		if cause := context.Cause(ctx); err == nil || !errors.Is(cause, tenure.ErrForeign) {
			t.Errorf("got %v, and the alarm %v", err, cause)
		}
		if after, err := store.Read(t.Context(), "billing"); err != nil || after.Version != e.Version {
			t.Errorf("after the campaign: got %+v, %v", after, err)
		}
	})
}

// dumped is a server whose tables can be written to a file and restored.
type dumped interface {
	Dump(t testing.TB, database string) []byte
	Restore(t testing.TB, database string, dump []byte)
}

// TestRealRestoredTable: while a table is restored from a dump of a former term, the leader steps
// down. Then a member leads again, in a higher term.
func TestRealRestoredTable(t *testing.T) {
	for database, start := range map[string]func(testing.TB) sqld.Site{"postgres": sqld.PostgresSite, "elections": mariaDB} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			open(t, s.Pool(t), s.Dialect)
			server := s.Server.(dumped)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first, end := context.WithCancel(ctx)
			former := joins(t, first, over(t, s.Pool(t), s.Dialect), tenure.Config{ID: "former", Lease: time.Second})
			<-former.leads
			dump := server.Dump(t, database) // it shows that "former" leads
			end()
			<-former.gone
			leader := joins(t, ctx, over(t, s.Pool(t), s.Dialect), tenure.Config{ID: "leader", Lease: time.Second})
			lost := <-leader.leads
			next := joins(t, ctx, over(t, s.Pool(t), s.Dialect), tenure.Config{ID: "next", Lease: time.Second})
			server.Restore(t, database, dump)
			<-lost.Context().Done()
			if cause := context.Cause(lost.Context()); !errors.Is(cause, tenure.ErrRegressed) && !errors.Is(cause, tenure.ErrRemade) {
				t.Errorf("the leader stepped down because of %v", cause)
			}
			var term *tenure.Term
			select {
			case term = <-leader.leads: // it may lead again
			case term = <-next.leads:
			}
			if term.Token() <= lost.Token() {
				t.Errorf("token %d after %d", term.Token(), lost.Token())
			}
		})
	}
}
