//go:build integration

package sql

import (
	"context"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// fresh reads a key as a process does that has just started.
func fresh(t *testing.T, p *sqld.Postgres, database, key string) driver.Entry {
	t.Helper()
	e, err := over(t, p.Open(t, "postgres", database), sqlstore.Postgres()).Read(t.Context(), key)
	must(t, err)
	return e
}

// seed writes the first value of a key.
func seed(t *testing.T, p *sqld.Postgres, database, key string) {
	t.Helper()
	_, err := open(t, p.Open(t, "postgres", database), sqlstore.Postgres()).CompareAndSwap(t.Context(), key, "", []byte("first"))
	must(t, err)
}

// TestEachStandbyHasItsOwnEra: two standbys of one primary are promoted to timelines of the same
// number.
func TestEachStandbyHasItsOwnEra(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	seed(t, p, "postgres", "k")
	a, b := p.Standby(t), p.Standby(t)
	must(t, p.Stop()) // both have its last write
	eras := map[uint64]string{}
	for name, s := range map[string]*sqld.Postgres{"the first": a, "the second": b} {
		s.Promote(t)
		e := fresh(t, s, "postgres", "k")
		if other, known := eras[e.Era]; known || !e.Unproven || string(e.Value) != "first" {
			t.Errorf("%s standby: %+v, with the era of %q", name, e, other)
		}
		eras[e.Era] = name
	}
	must(t, a.Kill())
	must(t, a.Start())
	if e := fresh(t, a, "postgres", "k"); eras[e.Era] != "" {
		t.Errorf("the first standby has, after another one took over, the era of %q", eras[e.Era])
	}
}

// TestRestartedPrimaryIsAnotherEra: after a failover the former primary is started again, without
// pg_rewind. It lacks the writes of the standby.
func TestRestartedPrimaryIsAnotherEra(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newPair(t)
	short, stop := context.WithCancel(ctx)
	first := joins(t, short, p.store(), tenure.Config{ID: "first", Lease: time.Second})
	<-first.leads
	stop()
	<-first.gone // its release is written
	p.separate(p.store(), "billing")
	p.failOver()
	const lease = 4 * time.Second
	old := <-joins(t, ctx, p.store(), tenure.Config{ID: "second", Lease: lease}).leads
	must(t, p.standby.Kill())
	must(t, p.primary.Start())
	p.address.Store(p.primary.Address())
	if <-joins(t, ctx, p.store(), tenure.Config{ID: "fresh", Lease: lease}).leads; old.Err() == nil {
		t.Error("two leaders: one of the former standby, and one that believed the release on the former primary")
	}
}

// TestCopiedDatabaseIsAnotherEra: an operator makes the database again from a copy.
func TestCopiedDatabaseIsAnotherEra(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	admin := p.Open(t, "postgres", "postgres")
	run(t, admin, "CREATE DATABASE app")
	seed(t, p, "app", "k")
	before := fresh(t, p, "app", "k")
	const alone = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = 'app'"
	run(t, admin, alone, "CREATE DATABASE copy TEMPLATE app", "DROP DATABASE app WITH (FORCE)", "CREATE DATABASE app TEMPLATE copy")
	after := fresh(t, p, "app", "k")
	if before.Unproven || !after.Unproven || after.Era == before.Era {
		t.Errorf("before %+v, after %+v: want another era, and an unproven value", before, after)
	}
}
