//go:build integration

package sql

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/electiontest"
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

func pushHarness(t *testing.T) func(t testing.TB) drivertest.Harness {
	p := sqld.StartPostgres(t)
	dsn := p.DSN("postgres", "postgres")
	return func(t testing.TB) drivertest.Harness {
		s := pushes(t, dsn, dsn)
		h := actions(sqld.Open(t, "pgx", dsn), s.Store, "$1")
		h.Store, h.Peer = s, pushes(t, dsn, dsn)
		h.Delete, h.Purge = nil, nil // a deletion by hand sends no notification
		h.FloorTick = time.Microsecond
		return h
	}
}

func TestRealPushConformance(t *testing.T) { drivertest.Run(t, pushHarness(t)) }

func TestRealPushElections(t *testing.T) { electiontest.Run(t, pushHarness(t)) }

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

// TestRealLostListener: a connection that an operator ends, or whose server crashes, is replaced.
// Then every watch is notified to read.
func TestRealLostListener(t *testing.T) {
	p := sqld.StartPostgres(t)
	dsn := p.DSN("postgres", "postgres")
	s := pushes(t, dsn, dsn)
	seen := make(chan driver.Entry, 100)
	stop, err := s.Watch(t.Context(), "billing", func(e driver.Entry) { seen <- e })
	must(t, err)
	defer stop()
	for round, lose := range []func(){
		func() {
			run(t, p.Open(t, "postgres", "postgres"), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
		},
		func() { must(t, p.Kill()); must(t, p.Start()) },
	} {
		lose()
		for e := range seen {
			if e.Unverified && e.Version == "" {
				break // it is notified to read
			}
		}
		now, err := s.Read(t.Context(), "billing")
		must(t, err)
		version, err := s.CompareAndSwap(t.Context(), "billing", now.Version, fmt.Append(nil, "value ", round))
		must(t, err)
		for e := range seen {
			if e.Version == version {
				break
			}
		}
	}
}
