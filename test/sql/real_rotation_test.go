//go:build integration

package sql

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/rotation"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// TestRealRotationPostgres: the password of a role is replaced, also for the connection that
// listens. It is in the file of PGPASSFILE, or in a service file.
func TestRealRotationPostgres(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	p.Admit(t, "host all member 127.0.0.1/32 scram-sha-256")
	admin := p.Open(t, "postgres", "postgres")
	store := open(t, admin, sqlstore.Postgres())
	run(t, admin, "CREATE ROLE member LOGIN", "GRANT SELECT, INSERT, UPDATE ON tenure TO member")
	accept := func(secret string) {
		run(t, admin, "ALTER ROLE member PASSWORD '"+secret+"'",
			"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = 'member'")
	}
	passfile, hand := rotation.File(t, "pgpass", "*:*:*:member:SECRET\n")
	service, handService := rotation.File(t, "service.conf", "[app]\nuser=member\npassword=SECRET\n")
	for name, play := range map[string]*rotation.Play{
		"passfile": {Args: []string{"--store", "postgres://member@" + p.Address() + "/postgres"}, Env: []string{"PGPASSFILE=" + passfile}, Hand: hand},
		"service":  {Args: []string{"--store", "postgres://" + p.Address() + "/postgres?service=app"}, Env: []string{"PGSERVICEFILE=" + service}, Hand: handService},
	} {
		t.Run(name, func(t *testing.T) {
			play.Store, play.Accept, play.Refusal = store, accept, "password authentication failed"
			play.Run(t)
			run(t, admin, "DELETE FROM tenure")
		})
	}
}

// TestRealRotationMariaDB: the password of a user is replaced, which is in ~/.my.cnf.
func TestRealRotationMariaDB(t *testing.T) {
	t.Parallel()
	m := sqld.StartMariaDB(t)
	run(t, m.Open(t, "root", ""), "CREATE DATABASE app")
	admin := m.Open(t, "root", "app")
	store := open(t, admin, sqlstore.MySQL())
	run(t, admin, "CREATE USER member", "GRANT SELECT, INSERT, UPDATE ON app.* TO member")
	file, hand := rotation.File(t, ".my.cnf", "[client]\nuser=member\npassword=SECRET\n")
	(&rotation.Play{
		Args:  []string{"--store", "mysql://" + m.Address() + "/app"},
		Env:   []string{"HOME=" + filepath.Dir(file)},
		Store: store,
		Accept: func(secret string) {
			run(t, admin, "ALTER USER member IDENTIFIED BY '"+secret+"'", "KILL USER member")
		},
		Hand:    hand,
		Refusal: "Access denied",
	}).Run(t)
}

// TestRealRotationListener: the hooks of the pool and of the connection that listens get the
// password from the program. After a rotation the store still pushes.
func TestRealRotationListener(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	p.Admit(t, "host all member 127.0.0.1/32 scram-sha-256")
	admin := p.Open(t, "postgres", "postgres")
	open(t, admin, sqlstore.Postgres())
	run(t, admin, "CREATE ROLE member LOGIN", "GRANT SELECT, INSERT, UPDATE ON tenure TO member")
	var secret atomic.Value
	replace := func(s string) {
		secret.Store(s)
		run(t, admin, "ALTER ROLE member PASSWORD '"+s+"'",
			"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = 'member'")
	}
	replace("one")
	config, err := pgx.ParseConfig(p.DSN("member", "postgres"))
	must(t, err)
	config.Password = "one"
	before := func(_ context.Context, c *pgx.ConnConfig) error {
		c.Password = secret.Load().(string)
		return nil
	}
	db := stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(before))
	t.Cleanup(func() { _ = db.Close() })
	s, err := pgxstore.New(db, config)
	must(t, err)
	s.BeforeConnect(before)
	seen := make(chan driver.Entry, 100)
	stop, err := s.Watch(t.Context(), "billing", func(e driver.Entry) { seen <- e })
	must(t, err)
	defer stop()
	replace("two")
	for e := range seen {
		if e.Unverified && e.Version == "" {
			break // it listens again
		}
	}
	wait.Succeeds(t, "the pool connects again", func(ctx context.Context) error {
		_, err := s.Read(ctx, "billing")
		return err
	})
	v, err := s.CompareAndSwap(t.Context(), "billing", "", []byte("value"))
	must(t, err)
	for e := range seen {
		if e.Version == v {
			return
		}
	}
}
