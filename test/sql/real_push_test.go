//go:build integration

package sql

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// pushes is a store over a pool of its own that listens at an address.
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
		h.Delete, h.Purge = nil, nil // what is deleted by hand is not notified
		h.FloorTick = time.Microsecond
		return h
	}
}

func TestRealPushConformance(t *testing.T) { drivertest.Run(t, pushHarness(t)) }

func TestRealPushElections(t *testing.T) { electiontest.Run(t, pushHarness(t)) }
