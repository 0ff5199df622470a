package sqld

import (
	"cmp"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rotation"
)

// client is a client with a mistake, or with a right less, with the remedy that errors name.
type client struct {
	name   string
	pool   func(t testing.TB) *sql.DB
	table  string // by default tenure
	want   string
	denied bool
	works  string // the calls that do not fail
	create bool   // it creates the table
	loose  bool   // what works may conflict
	// begin and end are statements of the administrator.
	begin, end string
}

// list returns clients of a database with the table, which an administrator has.
func list(t testing.TB, admin *sql.DB, dialect sqlstore.Dialect, clients []client) (all []rig.Client) {
	t.Helper()
	owner, err := sqlstore.New(admin, dialect)
	must(t, err)
	must(t, owner.Create(t.Context()))
	for _, c := range clients {
		fails := slices.DeleteFunc(strings.Fields(rig.All), func(call string) bool { return strings.Contains(c.works, call) })
		if c.create {
			fails = []string{"open"}
		}
		all = append(all, rig.Client{
			Name: c.name, Owner: owner, Fails: strings.Join(fails, " "), Says: rig.Says(c.want), Denied: c.denied, Elsewhere: c.loose || c.table != "",
			Open: func(t testing.TB) (driver.Store, error) {
				if c.begin != "" {
					must(t, execute(admin, c.begin))
					t.Cleanup(func() { must(t, execute(admin, c.end)) })
				}
				s, err := sqlstore.New(c.pool(t), dialect, sqlstore.WithTable(cmp.Or(c.table, "tenure")))
				if err == nil && c.create {
					err = s.Create(t.Context())
				}
				return s, err
			},
		})
	}
	return all
}

// on returns pools of clients at a DSN.
func (s Site) on(dsn string) func(testing.TB) *sql.DB {
	return func(t testing.TB) *sql.DB { return Open(t, s.Driver, dsn) }
}

// onServer calls the function for the server of the site, if there is one.
func onServer[T any](t testing.TB, s Site, onPostgres func(testing.TB, *Postgres) []T, onMariaDB func(testing.TB, *MariaDB) []T) []T {
	t.Helper()
	switch server := s.Server.(type) {
	case *Postgres:
		return onPostgres(t, server)
	case *MariaDB:
		return onMariaDB(t, server)
	}
	return nil
}

// Mistakes returns those of clients of PostgreSQL or MariaDB.
func (s Site) Mistakes(t testing.TB) []rig.Client {
	return onServer(t, s, s.postgresMistakes, s.mariaDBMistakes)
}

func (s Site) postgresMistakes(t testing.TB, p *Postgres) []rig.Client {
	admin := p.Open(t, "postgres", "postgres")
	executeAll(t, admin, "CREATE ROLE guest LOGIN PASSWORD 's3cret'", "GRANT SELECT, INSERT, UPDATE ON tenure TO guest",
		"CREATE ROLE secure LOGIN PASSWORD 's3cret'", "GRANT SELECT, INSERT, UPDATE ON tenure TO secure",
		"CREATE ROLE idle", "CREATE TABLE other (name text PRIMARY KEY, x text)",
		"CREATE TABLE typed (name integer PRIMARY KEY, value text, version text, floor text, era text)",
		"CREATE TABLE loose (name text, value bytea, version text, floor bigint, era text)")
	p.Admit(t, "host all guest 127.0.0.1/32 scram-sha-256", "hostssl all secure 127.0.0.1/32 scram-sha-256")
	as := func(user, database string) func(testing.TB) *sql.DB { return s.on(p.DSN(user, database)) }
	own := as("postgres", "postgres")
	all := []client{
		{name: "no mistake", pool: as("guest:s3cret", "postgres"), works: rig.All},
		{name: "no table", pool: own, table: "missing", want: `CREATE TABLE IF NOT EXISTS "missing"`},
		{name: "no schema", pool: own, table: "missing.tenure", want: `CREATE TABLE IF NOT EXISTS "missing"."tenure"`},
		{name: "no database", pool: as("postgres", "missing"), want: "PGDATABASE"},
		{name: "other columns", pool: own, table: "other", want: "other columns"},
		{name: "other types", pool: own, table: "typed", want: "other columns"},
		{name: "name is not unique", pool: own, table: "loose", want: "other columns", works: "read update rights"},
		{name: "wrong password", pool: as("guest:s3cretwrong", "postgres"), want: "PGPASSWORD", denied: true},
		{name: "no password", pool: as("guest", "postgres"), want: "PGPASSFILE", denied: true},
		{name: "no such role", pool: as("missing", "postgres"), want: "pg_hba.conf", denied: true},
		{name: "no right to log in", pool: as("idle", "postgres"), want: "pg_hba.conf", denied: true},
		{name: "no right to create", pool: as("guest:s3cret", "postgres"), table: "another", create: true, want: "CREATE TABLE", denied: true},
		{name: "the server requires TLS", pool: as("secure:s3cret", "postgres"), want: "sslmode", denied: true},
		{name: "the client requires TLS", pool: s.on(s.DSN + "?sslmode=require"), want: "ssl = on"},
		{name: "read-only", pool: s.on(s.DSN + "?default_transaction_read_only=on"), want: "connect to the primary", works: "read"},
	}
	if !s.bare() {
		all = append(all, client{name: "a standby", pool: s.on(p.Standby(t).DSN("postgres", "postgres")), want: "connect to the primary"})
	}
	return list(t, p.Open(t, "postgres", "postgres"), s.Dialect, all)
}

func (s Site) mariaDBMistakes(t testing.TB, m *MariaDB) []rig.Client {
	admin := s.Pool(t)
	executeAll(t, admin, "CREATE USER guest IDENTIFIED BY 's3cret'", "GRANT SELECT, INSERT, UPDATE ON elections.* TO guest",
		"CREATE USER secure IDENTIFIED BY 's3cret' REQUIRE SSL", "CREATE TABLE other (name varbinary(255) PRIMARY KEY, x text)",
		"CREATE TABLE typed (name integer PRIMARY KEY, value blob, version text, floor bigint, era text)",
		"CREATE TABLE narrow (name varbinary(255) PRIMARY KEY, value blob, version varchar(9), floor bigint, era text)")
	as := func(user string) func(testing.TB) *sql.DB { return s.on(m.DSN(user, "elections")) }
	guest, some := as("guest:s3cret"), "read update rights"
	noTrust := "ssl_cert"
	if m.programs != "" { // since 11.4 it signs a certificate itself
		noTrust = "failed to verify certificate"
	}
	return list(t, admin, s.Dialect, []client{
		{name: "no mistake", pool: guest, works: rig.All},
		{name: "no table", pool: s.Pool, table: "missing", want: "CREATE TABLE IF NOT EXISTS `missing`"},
		{name: "no schema", pool: s.Pool, table: "missing.tenure", want: "CREATE TABLE IF NOT EXISTS `missing`.`tenure`"},
		{name: "no database", pool: s.on(m.DSN("root", "missing")), want: "CREATE DATABASE"},
		{name: "no database is named", pool: s.on(m.DSN("root", "")), want: "name the database"},
		{name: "other columns", pool: s.Pool, table: "other", want: "other columns"},
		{name: "other types", pool: s.Pool, table: "typed", want: "other columns", works: some},
		{name: "a short column", pool: s.Pool, table: "narrow", want: "other columns", works: some},
		{name: "wrong password", pool: as("guest:s3cretwrong"), want: "user and password", denied: true},
		{name: "no such user", pool: as("missing"), want: "user and password", denied: true},
		{name: "no right to create", pool: guest, table: "another", create: true, want: "CREATE TABLE", denied: true},
		{name: "the user requires TLS", pool: as("secure:s3cret"), want: "REQUIRE SSL", denied: true},
		{name: "the client requires TLS", pool: s.on(s.DSN + "?tls=true"), want: noTrust},
		{name: "read-only transactions", pool: s.on(s.DSN + "?tx_read_only=1"), want: "connect to the primary", works: "read"},
		{name: "statements do not commit", pool: s.on(s.DSN + "?autocommit=0"), want: "autocommit = 1", works: "update rights", loose: true},
		{
			name: "read-only", pool: guest, want: "read_only", works: "read",
			begin: "SET GLOBAL read_only = ON", end: "SET GLOBAL read_only = OFF",
		},
		{
			name: "the server requires TLS", pool: guest, want: "require_secure_transport", denied: true,
			begin: "SET GLOBAL require_secure_transport = ON", end: "SET GLOBAL require_secure_transport = OFF",
		},
	})
}

// documented returns the statements of docs/sql.md that create roles and grant rights on the
// database app.
func documented(t testing.TB, database string) (statements []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "sql.md"))
	must(t, err)
	_, rest, _ := strings.Cut(string(page), "\n## Rights\n")
	_, rest, ok := strings.Cut(rest, "\n"+database)
	for line := range strings.Lines(rest) {
		switch text, code := strings.CutPrefix(line, "    "); {
		case code:
			statements = append(statements, strings.TrimSuffix(strings.TrimSpace(text), ";"))
		case len(statements) > 0:
			return statements
		}
	}
	if !ok || len(statements) == 0 {
		t.Fatalf("docs/sql.md has no rights for %s", database)
	}
	return statements
}

// Rights returns clients of a database app with the documented roles.
func (s Site) Rights(t testing.TB) []rig.Client {
	return onServer(t, s, s.postgresRights, s.mariaDBRights)
}

// lacks returns the two roles, and each without one right. In a lack, works has the calls that work
// still.
func lacks(pool func(role string) func(testing.TB) *sql.DB, without []client) []client {
	all := []client{
		{name: "candidate", pool: pool("candidate"), works: rig.All},
		{name: "observer", pool: pool("observer"), denied: true, works: "read", want: "to a candidate INSERT and UPDATE"},
	}
	for _, l := range without {
		role := "candidate"
		if strings.HasSuffix(l.name, "observer") {
			role = "observer"
		}
		l.pool, l.begin, l.end = pool(role), "REVOKE "+l.name, "GRANT "+strings.Replace(l.name, " FROM ", " TO ", 1)
		all = append(all, l)
	}
	return all
}

func (s Site) postgresRights(t testing.TB, p *Postgres) []rig.Client {
	executeAll(t, p.Open(t, "postgres", "postgres"), "CREATE DATABASE app", "REVOKE ALL ON DATABASE app FROM PUBLIC")
	p.Admit(t, "host all all 127.0.0.1/32 scram-sha-256")
	admin := p.Open(t, "postgres", "app")
	pool := func(role string) func(testing.TB) *sql.DB { return s.on(p.DSN(role+":s3cret", "app")) }
	all := list(t, admin, s.Dialect, lacks(pool, []client{
		{name: "SELECT ON tenure FROM candidate", denied: true, want: "SELECT on the table"},
		{name: "INSERT ON tenure FROM candidate", denied: true, works: "read update rights", want: "INSERT"},
		{name: "UPDATE ON tenure FROM candidate", denied: true, works: "read insert", want: "UPDATE"},
		{name: "USAGE ON SCHEMA public FROM candidate", table: "public.tenure", denied: true, want: "USAGE on the schema"},
		{name: "USAGE ON SCHEMA public FROM candidate", want: "USAGE"}, // the server hides it
		{name: "CONNECT ON DATABASE app FROM candidate", denied: true, want: "CONNECT on the database"},
		{name: "EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC", denied: true, works: "rights", want: "pg_control_system"},
		{name: "SELECT ON tenure FROM observer", denied: true, want: "SELECT on the table"},
		{name: "USAGE ON SCHEMA public FROM observer", table: "public.tenure", denied: true, want: "USAGE on the schema"},
		{name: "CONNECT ON DATABASE app FROM observer", denied: true, want: "CONNECT on the database"},
	}))
	executeAll(t, admin, append([]string{"REVOKE ALL ON SCHEMA public FROM PUBLIC"}, documented(t, "PostgreSQL")...)...)
	return all
}

func (s Site) mariaDBRights(t testing.TB, m *MariaDB) []rig.Client {
	must(t, execute(s.Pool(t), "CREATE DATABASE app"))
	admin := m.Open(t, "root", "app")
	pool := func(role string) func(testing.TB) *sql.DB { return s.on(m.DSN(role+":s3cret", "app")) }
	all := list(t, admin, s.Dialect, lacks(pool, []client{
		{name: "SELECT ON app.tenure FROM candidate", denied: true, want: "SELECT on the table"},
		{name: "INSERT ON app.tenure FROM candidate", denied: true, works: "read update rights", want: "INSERT"},
		{name: "UPDATE ON app.tenure FROM candidate", denied: true, works: "read insert", want: "UPDATE"},
		{name: "SELECT ON app.tenure FROM observer", denied: true, want: "SELECT on the table"},
	}))
	executeAll(t, admin, documented(t, "MySQL and MariaDB")...)
	return all
}

// Rotations replaces the password of a role.
func (s Site) Rotations(t testing.TB) []*rotation.Play {
	return onServer(t, s, s.postgresRotations, s.mariaDBRotations)
}

func (s Site) mariaDBRotations(t testing.TB, m *MariaDB) []*rotation.Play {
	admin := s.Pool(t)
	executeAll(t, admin, "CREATE USER member", "GRANT SELECT, INSERT, UPDATE ON elections.* TO member")
	file, hand := rotation.File(t, ".my.cnf", "[client]\nuser=member\npassword=SECRET\n")
	return []*rotation.Play{{
		Name: "~/.my.cnf", Args: []string{"--store", "mysql://" + m.Address() + "/elections"}, Env: []string{"HOME=" + filepath.Dir(file)},
		Store: own(t, s), Hand: hand, Refusal: "Access denied",
		Accept: func(secret string) {
			executeAll(t, admin, "ALTER USER member IDENTIFIED BY '"+secret+"'", "KILL USER member")
		},
	}}
}

// postgresRotations: the password, also of the connection that listens, is in the file of
// PGPASSFILE, or in a service file.
func (s Site) postgresRotations(t testing.TB, p *Postgres) []*rotation.Play {
	p.Admit(t, "host all member 127.0.0.1/32 scram-sha-256")
	admin := p.Open(t, "postgres", "postgres")
	executeAll(t, admin, "CREATE ROLE member LOGIN", "GRANT SELECT, INSERT, UPDATE ON tenure TO member")
	passfile, hand := rotation.File(t, "pgpass", "*:*:*:member:SECRET\n")
	service, handService := rotation.File(t, "service.conf", "[app]\nuser=member\npassword=SECRET\n")
	all := []*rotation.Play{
		{
			Name: "passfile", Args: []string{"--store", "postgres://member@" + p.Address() + "/postgres"},
			Env: []string{"PGPASSFILE=" + passfile}, Hand: hand,
		},
		{
			Name: "service", Args: []string{"--store", "postgres://" + p.Address() + "/postgres?service=app"},
			Env: []string{"PGSERVICEFILE=" + service}, Hand: handService,
		},
	}
	for _, play := range all {
		play.Store, play.Refusal = own(t, s), "password authentication failed"
		play.Accept = func(secret string) {
			executeAll(t, admin, "ALTER ROLE member PASSWORD '"+secret+"'",
				"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = 'member'")
		}
	}
	return all
}

// own returns a store with credentials that stay.
func own(t testing.TB, s Site) driver.Store {
	store, _ := s.open(t, s.DSN)
	return store
}

func executeAll(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := execute(db, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}
