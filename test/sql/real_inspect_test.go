//go:build integration

package sql

import (
	"database/sql"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

func inspect(t *testing.T, name string, s *sqlstore.Store, want map[string]driver.Severity) {
	t.Helper()
	found, err := s.Inspect(t.Context(), time.Minute)
	must(t, err)
	compareFindings(t, name, found, want)
}

// guest creates a role with only the rights of a candidate.
func guest(t *testing.T, admin *sql.DB) {
	t.Helper()
	run(t, admin, "CREATE ROLE guest LOGIN", "GRANT SELECT, INSERT, UPDATE ON tenure TO guest")
}

func TestRealInspectPostgres(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	admin := p.Open(t, "postgres", "postgres")
	open(t, admin, sqlstore.Postgres())
	guest(t, admin)
	fresh := func() *sqlstore.Store { return over(t, p.Open(t, "guest", "postgres"), sqlstore.Postgres()) }
	inspect(t, "sound", fresh(), nil)
	inspect(t, "pooled by session", through(t, p, "session"), nil)
	inspect(t, "pooled by transaction", through(t, p, "transaction"), map[string]driver.Severity{"pool_mode": driver.Advice})
	for setting, c := range map[string]struct {
		value    string
		severity driver.Severity
	}{
		"synchronous_commit":            {"off", driver.Warning},
		"default_transaction_read_only": {"on", driver.Unsafe},
	} {
		run(t, admin, "ALTER ROLE guest SET "+setting+" = "+c.value)
		inspect(t, setting, fresh(), map[string]driver.Severity{setting: c.severity})
		run(t, admin, "ALTER ROLE guest RESET "+setting)
	}
	run(t, admin, "ALTER ROLE guest SET synchronous_commit = off")
	found, err := fresh().Inspect(t.Context(), time.Minute)
	must(t, err)
	run(t, p.Open(t, "guest", "postgres"), found[0].Remedy)
	inspect(t, "after the remedy, by the role itself", fresh(), nil)
	p.Standby(t)
	inspect(t, "with a standby", fresh(), map[string]driver.Severity{"synchronous_standby_names": driver.Advice})
}

// through returns a store behind a pooler.
func through(t *testing.T, p *sqld.Postgres, mode string) *sqlstore.Store {
	t.Helper()
	b := sqld.StartPgBouncer(t, p, mode)
	return over(t, sqld.Open(t, "pgx", b.DSN("postgres", "postgres")), sqlstore.Postgres())
}

func TestRealInspectFsync(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t, "fsync=off")
	inspect(t, "fsync", open(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres()), map[string]driver.Severity{"fsync": driver.Warning})
}

func TestRealInspectMariaDBByDefault(t *testing.T) {
	t.Parallel()
	m := sqld.StartMariaDB(t)
	run(t, m.Open(t, "root", ""), "CREATE DATABASE app")
	s := open(t, m.Open(t, "root", "app"), sqlstore.MySQL())
	inspect(t, "no binary log", s, map[string]driver.Severity{"log_bin": driver.Warning})
}

func TestRealInspectMariaDB(t *testing.T) {
	t.Parallel()
	m := sqld.StartMariaDB(t, "--log-bin", "--sync-binlog=1")
	run(t, m.Open(t, "root", ""), "CREATE DATABASE app")
	admin := m.Open(t, "root", "app")
	open(t, admin, sqlstore.MySQL())
	run(t, admin, "CREATE USER guest", "GRANT SELECT, INSERT, UPDATE ON app.* TO guest")
	s := over(t, m.Open(t, "guest", "app"), sqlstore.MySQL())
	inspect(t, "sound", s, nil)
	for setting, c := range map[string]struct {
		value, sound string
		severity     driver.Severity
	}{
		"read_only":                      {"ON", "OFF", driver.Unsafe},
		"innodb_flush_log_at_trx_commit": {"2", "1", driver.Warning},
	} {
		run(t, admin, "SET GLOBAL "+setting+" = "+c.value)
		inspect(t, setting, s, map[string]driver.Severity{setting: c.severity})
		run(t, admin, "SET GLOBAL "+setting+" = "+c.sound)
	}
	for _, schema := range []string{"", "app."} {
		named := over(t, m.Open(t, "guest", "app"), sqlstore.MySQL(), sqlstore.WithTable(schema+"tenure"))
		run(t, admin, "ALTER TABLE tenure ENGINE=MyISAM")
		inspect(t, "MyISAM, "+schema, named, map[string]driver.Severity{"ENGINE": driver.Unsafe})
		run(t, admin, "ALTER TABLE tenure ENGINE=InnoDB", "ALTER TABLE tenure DROP PRIMARY KEY")
		inspect(t, "no key, "+schema, named, map[string]driver.Severity{"PRIMARY KEY": driver.Unsafe})
		run(t, admin, "ALTER TABLE tenure ADD PRIMARY KEY (name, version)")
		inspect(t, "another key, "+schema, named, map[string]driver.Severity{"PRIMARY KEY": driver.Unsafe})
		run(t, admin, "ALTER TABLE tenure DROP PRIMARY KEY, ADD UNIQUE (name)")
		inspect(t, "unique, "+schema, named, nil)
		run(t, admin, "ALTER TABLE tenure ADD PRIMARY KEY (name), DROP INDEX name")
		inspect(t, "sound again, "+schema, named, nil)
	}
}
