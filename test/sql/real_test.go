//go:build integration

package sql

import (
	"database/sql"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/internal/test/certificates"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/command"
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

// TestRealTLSPostgres: tenure run checks the server's certificate and presents its own, which the
// role member must have.
func TestRealTLSPostgres(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	admin := p.Open(t, "postgres", "postgres")
	open(t, admin, sqlstore.Postgres())
	run(t, admin, "CREATE ROLE member LOGIN", "GRANT SELECT, INSERT, UPDATE ON tenure TO member")
	tries(t, nil, map[string]string{
		"postgres://postgres@" + p.Address() + "/postgres?sslmode=require": "the server offers no TLS",
		"postgres://postgres@" + p.Address() + "/none":                     "there is no such database",
	})
	ca, cert, key := certificates.New(t)
	p.Encrypt(t, ca, cert, key)
	p.Admit(t, "hostssl all member 127.0.0.1/32 cert")
	other, _, _ := certificates.New(t)
	store := "postgres://member@" + p.Address() + "/postgres?sslmode=verify-full"
	own := "&sslcert=" + cert + "&sslkey=" + key
	tries(t, nil, map[string]string{
		store + own + "&sslrootcert=" + ca:    "",
		store + own + "&sslrootcert=" + other: "unknown authority",
		store + own:                           "sslrootcert=FILE",
		store + "&sslrootcert=" + ca:          "client certificate",
		strings.ReplaceAll(store+own+"&sslrootcert="+ca, "127.0.0.1", "localhost"): "one of the certificate's names",
	})
}

// TestRealTLSMariaDB: as TestRealTLSPostgres, with the files also from ~/.my.cnf.
func TestRealTLSMariaDB(t *testing.T) {
	t.Parallel()
	m := sqld.StartMariaDB(t)
	run(t, m.Open(t, "root", ""), "CREATE DATABASE app")
	admin := m.Open(t, "root", "app")
	open(t, admin, sqlstore.MySQL())
	run(t, admin, "CREATE USER member REQUIRE X509", "GRANT SELECT, INSERT, UPDATE ON app.* TO member")
	tries(t, nil, map[string]string{
		"mysql://root@" + m.Address() + "/app?tls=true": "the server offers no TLS",
		"mysql://root@" + m.Address() + "/none":         "there is no such database",
	})
	ca, cert, key := certificates.New(t)
	m.Encrypt(t, ca, cert, key)
	other, _, _ := certificates.New(t)
	store := "mysql://member@" + m.Address() + "/app?tls=true"
	own := "&ssl-cert=" + cert + "&ssl-key=" + key
	tries(t, nil, map[string]string{
		store + own + "&ssl-ca=" + ca:    "",
		store + own + "&ssl-ca=" + other: "unknown authority",
		store + own:                      "ssl-ca=FILE",
		store + "&ssl-ca=" + ca:          "parameters for TLS and certificates",
		store + "&ssl-ca=" + key:         "holds no certificate",
		store + "&ssl-ca=missing.pem":    "missing.pem",
		store + "&ssl-cert=" + cert:      "ssl-key",
		strings.ReplaceAll(store+own+"&ssl-ca="+ca, "127.0.0.1", "localhost"): "one of the certificate's names",
	})
	home := t.TempDir()
	text := "[client]\nssl-ca = " + ca + "\nssl_cert = " + cert + "\nssl_key = " + key + "\n"
	must(t, os.WriteFile(filepath.Join(home, ".my.cnf"), []byte(text), 0o600))
	tries(t, []string{"HOME=" + home}, map[string]string{
		store:                                    "",
		"mysql://member@" + m.Address() + "/app": "",
		"mysql://member@" + m.Address() + "/app?tls=false": "parameters for TLS and certificates",
	})
}

// tries runs a worker once on each store. For a store that cannot be used, the map has the wanted
// error, which must come at once: no wait would mend it.
func tries(t *testing.T, env []string, stores map[string]string) {
	t.Helper()
	tenure := command.Build(t)
	for store, want := range stores {
		c := exec.Command(tenure, "run", "--once", "--connect-timeout", "1h", "--store", store, "--election", "e", "--lease", "1s", "--", "true")
		c.Env = append(os.Environ(), env...)
		out, err := c.CombinedOutput()
		if (err == nil) != (want == "") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %q:\n%s", store, err, want, out)
		}
	}
}

// crew is two processes of examples/worker, and the table of their jobs.
type crew struct {
	*testing.T
	binary    string
	dsn       string
	db        *sql.DB
	addresses [2]string
	processes [2]*command.Process
}

// TestRealWorkerSurvivesRestarts: the worker of the examples does all jobs while its processes and
// the server are restarted, and the tokens never fall.
func TestRealWorkerSurvivesRestarts(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	dsn := p.DSN("postgres", "postgres")
	c := newCrew(t, dsn)
	c.start(0)
	c.start(1)
	first := c.works()

	leader := c.leader()
	c.stop(leader)
	c.start(leader)
	second := c.works()
	if second <= first {
		t.Errorf("after a hand-over the token is %d, before it was %d", second, first)
	}

	must(t, p.Stop())
	wait.Until(t, "health checks notice the outage", func() bool { return c.ready() == 0 })
	must(t, p.Start())
	if third := c.works(); third < second {
		t.Errorf("after a restart of the server the token is %d, before it was %d", third, second)
	}
	wait.Until(t, "health checks notice the end of the outage", func() bool { return c.ready() == 2 })
	c.stop(0)
	c.stop(1)
}

func newCrew(t *testing.T, dsn string) *crew {
	t.Helper()
	c := &crew{T: t, binary: filepath.Join(t.TempDir(), "worker"), dsn: dsn, db: sqld.Open(t, "pgx", dsn)}
	if out, err := exec.Command("go", "build", "-o", c.binary, "github.com/tenure-go/tenure/examples/worker").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	free, err := ports.Free(len(c.addresses))
	must(t, err)
	for i, port := range free {
		c.addresses[i] = ports.Address(port)
	}
	return c
}

func (c *crew) start(index int) {
	c.Helper()
	c.processes[index] = command.Start(c, "env", "DATABASE_URL="+c.dsn, c.binary, "-listen", c.addresses[index])
}

// stop asks a process to end, and waits until it has done so without an error.
func (c *crew) stop(index int) {
	c.Helper()
	must(c, c.processes[index].Stop())
	must(c, c.processes[index].Wait())
}

// works adds a job and returns the token of the leader that does it.
func (c *crew) works() (token uint64) {
	c.Helper()
	var id int
	wait.Until(c, "a job can be added", func() bool {
		return c.db.QueryRow("INSERT INTO jobs DEFAULT VALUES RETURNING id").Scan(&id) == nil
	})
	wait.Until(c, "the job is done", func() bool {
		return c.db.QueryRow("SELECT done_by FROM jobs WHERE id = $1", id).Scan(&token) == nil
	})
	return token
}

// leader waits until a process leads, and returns its index.
func (c *crew) leader() (index int) {
	c.Helper()
	wait.Until(c, "a process leads", func() bool {
		index = slices.IndexFunc(c.addresses[:], func(address string) bool {
			ok, text := health(address)
			return ok && strings.HasPrefix(text, "leader,")
		})
		return index >= 0
	})
	return index
}

// ready returns how many processes could lead.
func (c *crew) ready() (n int) {
	for _, address := range c.addresses {
		if ok, _ := health(address); ok {
			n++
		}
	}
	return n
}

func health(address string) (ok bool, text string) {
	answer, err := http.Get("http://" + address)
	if err != nil {
		return false, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK, string(body)
}
