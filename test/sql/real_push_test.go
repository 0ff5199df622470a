//go:build integration

package sql

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/reign"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// pushes returns a store over its own pool that listens at an address.
func pushes(t testing.TB, pool, listen string) *pgxstore.Store {
	t.Helper()
	config, err := pgx.ParseConfig(listen)
	must(t, err)
	s, err := pgxstore.New(sqld.Open(t, "pgx", pool), config)
	must(t, err)
	must(t, s.Create(t.Context()))
	return s
}

// TestRealPoolersAreRefused: a LISTEN behind a pooler would stay on a session that other clients
// get.
func TestRealPoolersAreRefused(t *testing.T) {
	p := sqld.StartPostgres(t)
	direct := p.DSN("postgres", "postgres")
	for _, mode := range []string{"transaction", "session"} {
		b := sqld.StartPgBouncer(t, p, mode)
		pooled := b.DSN("postgres", "postgres")
		s := pushes(t, pooled, pooled)
		if _, err := s.Watch(t.Context(), "billing", func(driver.Entry) {}); !errors.Is(err, pgxstore.ErrPooled) {
			t.Errorf("in mode %s, watching through the pooler: %v", mode, err)
		}
		s = pushes(t, pooled, direct)
		seen := make(chan driver.Version, 10)
		stop, err := s.Watch(t.Context(), "billing "+mode, func(e driver.Entry) { seen <- e.Version })
		must(t, err)
		defer stop()
		v, err := s.CompareAndSwap(t.Context(), "billing "+mode, "", []byte("value"))
		must(t, err)
		if got := <-seen; got != v {
			t.Errorf("in mode %s, pushed is %q, written was %q", mode, got, v)
		}
	}
	var listening int
	must(t, p.Open(t, "postgres", "postgres").QueryRow("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'").Scan(&listening))
	if listening > 2 {
		t.Errorf("%d sessions listen, more than the two that passed the poolers by", listening)
	}
}

// TestRealListeningElsewhere: two databases of one server have tables with one name.
func TestRealListeningElsewhere(t *testing.T) {
	p := sqld.StartPostgres(t)
	run(t, p.Open(t, "postgres", "postgres"), "CREATE DATABASE other")
	pushes(t, p.DSN("postgres", "other"), p.DSN("postgres", "other"))
	s := pushes(t, p.DSN("postgres", "postgres"), p.DSN("postgres", "other"))
	if _, err := s.Watch(t.Context(), "billing", func(driver.Entry) {}); !errors.Is(err, pgxstore.ErrElsewhere) {
		t.Errorf("got %v", err)
	}
}

// dsnOver returns the database's name over a relay.
func dsnOver(way *relay.Relay) string {
	return "postgres://postgres@" + strings.TrimPrefix(way.URL(), "nats://") + "/postgres?sslmode=disable"
}

// TestRealLostPushesAreReported: the address for listening is a forwarder, which ends, or passes
// nothing on. The elections say so, poll, and hand over as polled ones do. When it works again,
// they are pushed again.
func TestRealLostPushesAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(*relay.Relay)
		mend func(*relay.Relay) error
	}{
		"ends":              {(*relay.Relay).Cut, (*relay.Relay).Restore},
		"passes nothing on": {(*relay.Relay).Blackhole, func(r *relay.Relay) error { r.Heal(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sqld.StartPostgres(t)
			dsn := p.DSN("postgres", "postgres")
			way, err := relay.New(dsn)
			must(t, err)
			defer way.Close()
			ctx := wait.Context(t)
			r := reign.New(t, "billing", asking.ByTerm)
			troubles := make(chan error, 100)
			var members []*reign.Candidate
			for _, id := range []string{"a", "b"} {
				s := pushes(t, dsn, dsnOver(way))
				members = append(members, r.Join(s, nil, tenure.Config{ID: id, Lease: 2 * time.Second, OnEvent: func(e tenure.Event) {
					if e.Kind == tenure.EventTrouble && strings.Contains(e.Cause.Error(), "no notifications come") {
						troubles <- e.Cause
					}
				}}))
			}
			until := func(pushed bool) {
				for _, m := range members {
					_, err := m.Wait(ctx, func(s tenure.Status) bool { return s.Pushed == pushed && s.Leader.ID != "" })
					must(t, err)
				}
			}
			until(true)
			c.lose(way)
			until(false)
			if cause := <-troubles; errors.Is(cause, context.Canceled) {
				t.Errorf("the trouble is %v", cause)
			}
			old := r.Leader(0)
			must(t, old.By.HandOver(ctx, ""))
			if term := r.Leader(old.Token()); old.Err() == nil {
				t.Errorf("term %d of %s began within term %d", term.Token(), term.By.ID(), old.Token())
			}
			must(t, c.mend(way))
			until(true)
		})
	}
}

// TestRealWatchBeginsWhileItConnects: on an overloaded server a connection takes longer than a call
// may. The watch begins without notifications, says so, and says when they come.
func TestRealWatchBeginsWhileItConnects(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	dsn := p.DSN("postgres", "postgres")
	way, err := relay.New(dsn)
	must(t, err)
	defer way.Close()
	s := pushes(t, dsn, dsnOver(way))
	way.Blackhole()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	seen := make(chan driver.Entry, 100)
	stop, err := s.Watch(ctx, "billing", func(e driver.Entry) { seen <- e })
	must(t, err)
	defer stop()
	if e := <-seen; !errors.Is(e.Lost, driver.ErrConnecting) {
		t.Errorf("the first push is %+v", e)
	}
	way.Heal()
	for e := range seen {
		if e.Lost == nil {
			break
		}
	}
	v, err := s.CompareAndSwap(t.Context(), "billing", "", []byte("v"))
	must(t, err)
	for e := range seen {
		if e.Version == v {
			break
		}
	}
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
