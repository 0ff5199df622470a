//go:build integration

package sql

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// pair is a primary and its asynchronous standby, behind one name.
type pair struct {
	t                *testing.T
	primary, standby *sqld.Postgres
	address          atomic.Value // of the server behind the name
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, primary: sqld.StartPostgres(t)}
	p.address.Store(p.primary.Address())
	open(t, p.pool(), sqlstore.Postgres())
	p.standby = p.primary.Standby(t)
	return p
}

// pool has the connections of one process.
func (p *pair) pool() *sql.DB {
	cfg, err := pgx.ParseConfig(p.primary.DSN("postgres", "postgres"))
	must(p.t, err)
	cfg.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, p.address.Load().(string))
	}
	db := stdlib.OpenDB(*cfg)
	p.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (p *pair) store(opts ...sqlstore.Option) *sqlstore.Store {
	return over(p.t, p.pool(), sqlstore.Postgres(), opts...)
}

// separate waits until the standby has the present state, and cuts it off.
func (p *pair) separate(s driver.Store, key string) {
	e, err := s.Read(p.t.Context(), key)
	must(p.t, err)
	db := p.standby.Open(p.t, "postgres", "postgres")
	for found := 0; found == 0; {
		must(p.t, db.QueryRow("SELECT count(*) FROM tenure WHERE name = $1 AND value = $2", key, e.Value).Scan(&found))
	}
	p.standby.Separate(p.t)
}

// failOver kills the primary, and promotes the standby.
func (p *pair) failOver() {
	must(p.t, p.primary.Kill())
	p.standby.Promote(p.t)
	p.address.Store(p.standby.Address())
}

// insist repeats a call while connections to the killed server break.
func insist[T any](t *testing.T, call func(context.Context) (T, error)) T {
	t.Helper()
	for {
		v, err := call(t.Context())
		if err == nil || errors.Is(err, driver.ErrConflict) {
			return v
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestPromotedStandbyIsAnotherEra(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	s, ctx := p.store(), t.Context()
	first, err := s.CompareAndSwap(ctx, "k", "", []byte("first"))
	must(t, err)
	p.separate(s, "k")
	lost, err := s.CompareAndSwap(ctx, "k", first, []byte("lost"))
	must(t, err)
	before, err := s.Read(ctx, "k")
	must(t, err)
	p.failOver()
	after := insist(t, func(ctx context.Context) (driver.Entry, error) { return s.Read(ctx, "k") })
	if string(after.Value) != "first" || !after.Unproven || after.Era == before.Era || before.Unproven {
		t.Errorf("before %+v, after %+v: want the first value, unproven, in another era", before, after)
	}
	if after.Floor <= before.Floor {
		t.Errorf("floor %d after %d", after.Floor, before.Floor)
	}
	for _, prev := range []driver.Version{first, lost, ""} {
		if _, err := s.CompareAndSwap(ctx, "k", prev, []byte("late")); !errors.Is(err, driver.ErrConflict) {
			t.Errorf("a write from version %q of the former era: got %v, want a conflict", prev, err)
		}
	}
	next, err := s.CompareAndSwap(ctx, "k", after.Version, []byte("next"))
	must(t, err)
	if e, err := s.Read(ctx, "k"); err != nil || e.Version != next || e.Unproven {
		t.Errorf("got %+v, %v: want version %q, proven", e, err, next)
	}
}

// loseAClaim leaves a leader whose claim the promoted standby lacks. The record there is a release.
func loseAClaim(t *testing.T, p *pair, ctx context.Context, lease time.Duration, opts ...sqlstore.Option) *tenure.Term {
	t.Helper()
	s := p.store(opts...)
	short, stop := context.WithCancel(ctx)
	// Before its claim it waits for its own short lease.
	m := joins(t, short, s, tenure.Config{ID: "first", Lease: time.Second})
	<-m.leads
	stop()
	<-m.gone // its release is written
	p.separate(s, "billing")
	term := <-joins(t, ctx, p.store(opts...), tenure.Config{ID: "second", Lease: lease}).leads
	p.failOver()
	return term
}

// TestFreshMemberWaitsOutALostClaim: a member that starts after the loss does not know the claim.
func TestFreshMemberWaitsOutALostClaim(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newPair(t)
	const lease = 4 * time.Second
	lost := loseAClaim(t, p, ctx, lease)
	next := <-joins(t, ctx, p.store(), tenure.Config{ID: "fresh", Lease: lease}).leads
	if err := lost.Err(); err == nil {
		t.Error("two leaders: the one whose claim was lost, and a fresh one")
	}
	if next.Token() <= lost.Token() {
		t.Errorf("token %d after %d", next.Token(), lost.Token())
	}
}

// TestWithoutErasALostClaimMakesTwoLeaders is the control of the test above.
func TestWithoutErasALostClaimMakesTwoLeaders(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newPair(t)
	const lease = 5 * time.Minute
	lost := loseAClaim(t, p, ctx, lease, sqlstore.WithEra("''"))
	<-joins(t, ctx, p.store(sqlstore.WithEra("''")), tenure.Config{ID: "fresh", Lease: lease}).leads
	if err := lost.Err(); err != nil {
		t.Errorf("the term of the lost claim has ended (%v): the test above proves nothing", err)
	}
}
