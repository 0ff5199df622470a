//go:build integration

package sql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// documented returns the statements of docs/sql.md that create roles and grant rights on a
// database.
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

// roles is a database app with the table, and the documented roles.
type roles struct {
	dialect sqlstore.Dialect
	admin   *sql.DB
	pool    func(t testing.TB, user string) *sql.DB
	lacks   []lack
}

// lack is one right that is removed, with the calls that it denies.
type lack struct {
	revoke string
	role   string
	table  string // the table in the store's error; by default tenure
	denies string // of read, insert, update, rights
	want   string // in the error
	hides  bool   // the database does not report that a right is missing
}

func postgresRoles(t *testing.T) roles {
	p := sqld.StartPostgres(t)
	run(t, p.Open(t, "postgres", "postgres"), "CREATE DATABASE app", "REVOKE ALL ON DATABASE app FROM PUBLIC")
	r := roles{dialect: sqlstore.Postgres(), lacks: []lack{
		{revoke: "SELECT ON tenure FROM candidate", role: "candidate", denies: "read insert update rights", want: "SELECT on the table"},
		{revoke: "INSERT ON tenure FROM candidate", role: "candidate", denies: "insert", want: "INSERT"},
		{revoke: "UPDATE ON tenure FROM candidate", role: "candidate", denies: "update rights", want: "UPDATE"},
		{revoke: "USAGE ON SCHEMA public FROM candidate", role: "candidate", table: "public.tenure", denies: "read insert update rights", want: "USAGE on the schema"},
		{revoke: "USAGE ON SCHEMA public FROM candidate", role: "candidate", denies: "read insert update rights", want: "USAGE", hides: true},
		{revoke: "CONNECT ON DATABASE app FROM candidate", role: "candidate", denies: "read insert update rights", want: "CONNECT on the database"},
		{revoke: "EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC", role: "candidate", denies: "read insert update", want: "pg_control_system"},
		{revoke: "SELECT ON tenure FROM observer", role: "observer", denies: "read insert update rights", want: "SELECT on the table"},
		{revoke: "USAGE ON SCHEMA public FROM observer", role: "observer", table: "public.tenure", denies: "read insert update rights", want: "USAGE on the schema"},
		{revoke: "CONNECT ON DATABASE app FROM observer", role: "observer", denies: "read insert update rights", want: "CONNECT on the database"},
	}}
	p.Admit(t, "host all all 127.0.0.1/32 scram-sha-256")
	r.admin = p.Open(t, "postgres", "app")
	r.pool = func(t testing.TB, user string) *sql.DB { return p.Open(t, user+":s3cret", "app") }
	open(t, r.admin, r.dialect)
	run(t, r.admin, "REVOKE ALL ON SCHEMA public FROM PUBLIC")
	run(t, r.admin, documented(t, "PostgreSQL")...)
	return r
}

func mariadbRoles(t *testing.T) roles {
	m := sqld.StartMariaDB(t)
	run(t, m.Open(t, "root", ""), "CREATE DATABASE app")
	r := roles{dialect: sqlstore.MySQL(), lacks: []lack{
		{revoke: "SELECT ON app.tenure FROM candidate", role: "candidate", denies: "read insert update rights", want: "SELECT on the table"},
		{revoke: "INSERT ON app.tenure FROM candidate", role: "candidate", denies: "insert", want: "INSERT"},
		{revoke: "UPDATE ON app.tenure FROM candidate", role: "candidate", denies: "update rights", want: "UPDATE"},
		{revoke: "SELECT ON app.tenure FROM observer", role: "observer", denies: "read insert update rights", want: "SELECT on the table"},
	}}
	r.admin = m.Open(t, "root", "app")
	r.pool = func(t testing.TB, user string) *sql.DB { return m.Open(t, user+":s3cret", "app") }
	open(t, r.admin, r.dialect)
	run(t, r.admin, documented(t, "MySQL and MariaDB")...)
	return r
}

// deeds makes each call once where it can work: it inserts a row and updates another.
func deeds(t testing.TB, s, owner *sqlstore.Store) map[string]error {
	t.Helper()
	ctx := t.Context()
	v, err := owner.CompareAndSwap(ctx, "update", "", []byte("v"))
	must(t, err)
	_, read := s.Read(ctx, "update")
	_, insert := s.CompareAndSwap(ctx, "insert", "", []byte("v"))
	_, update := s.CompareAndSwap(ctx, "update", v, []byte("v"))
	return map[string]error{"read": read, "insert": insert, "update": update, "rights": s.CheckRights(ctx, "update")}
}

// check compares the calls that are denied.
func (r roles) check(t *testing.T, l lack) {
	t.Helper()
	run(t, r.admin, "DELETE FROM tenure")
	table := cmp.Or(l.table, "tenure")
	s := over(t, r.pool(t, l.role), r.dialect, sqlstore.WithTable(table))
	for call, err := range deeds(t, s, over(t, r.admin, r.dialect)) {
		switch denies := strings.Contains(l.denies, call); {
		case !denies:
			if err != nil {
				t.Errorf("%s: %v", call, err)
			}
		case err == nil || errors.Is(err, driver.ErrDenied) == l.hides:
			t.Errorf("%s: got %v, want one that wraps driver.ErrDenied: %v", call, err, !l.hides)
		case !strings.Contains(err.Error(), l.want) || !strings.Contains(err.Error(), "table "+table):
			t.Errorf("%s: got %v, want one with %q and the table", call, err, l.want)
		case strings.Contains(err.Error(), "s3cret"):
			t.Errorf("%s: %v shows the password", call, err)
		}
	}
}

func eachRoles(t *testing.T, test func(t *testing.T, r roles)) {
	for name, start := range map[string]func(*testing.T) roles{"postgres": postgresRoles, "mariadb": mariadbRoles} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// TestRealRights: the documented rights are enough, and none is unnecessary.
func TestRealRights(t *testing.T) {
	eachRoles(t, func(t *testing.T, r roles) {
		t.Run("candidate", func(t *testing.T) { r.check(t, lack{role: "candidate"}) })
		t.Run("observer", func(t *testing.T) {
			r.check(t, lack{role: "observer", denies: "insert update rights", want: "to a candidate INSERT and UPDATE"})
		})
		for _, l := range r.lacks {
			t.Run(l.revoke+l.table, func(t *testing.T) {
				run(t, r.admin, "REVOKE "+l.revoke)
				defer run(t, r.admin, "GRANT "+strings.Replace(l.revoke, " FROM ", " TO ", 1))
				r.check(t, l)
			})
		}
	})
}

// TestRealRolesElect: with the documented rights a candidate leads and an observer sees it. Members
// without a right report this while another candidate leads.
func TestRealRolesElect(t *testing.T) {
	eachRoles(t, func(t *testing.T, r roles) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		member := func(role, id string) *tenure.Election {
			e, err := tenure.New(over(t, r.pool(t, role), r.dialect), "billing", tenure.Config{ID: id, Lease: time.Second})
			must(t, err)
			return e
		}
		<-joins(t, ctx, over(t, r.pool(t, "candidate"), r.dialect), tenure.Config{ID: "first", Lease: time.Second}).leads
		for leader, err := range member("observer", "observer").Leaders(ctx) {
			must(t, err)
			if leader.ID == "first" {
				break
			}
		}
		standby := member("observer", "standby")
		var campaign sync.WaitGroup
		campaign.Go(func() { _, _ = standby.Campaign(ctx) })
		status, err := standby.Wait(ctx, func(s tenure.Status) bool { return s.WriteErr != nil })
		if err != nil || !errors.Is(status.WriteErr, driver.ErrDenied) {
			t.Errorf("a standby that may not write: got %v, %v", status.WriteErr, err)
		}
		run(t, r.admin, "REVOKE "+r.lacks[0].revoke)
		if _, err := member("candidate", "late").Campaign(ctx); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("without SELECT: got %v, want one that wraps driver.ErrDenied", err)
		}
		cancel()
		campaign.Wait()
	})
}
