//go:build integration

package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/reign"
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

// replacement replaces the database of a store by a copy, which may lack the latest write. It
// returns the last state of the original. Some can bring the original back.
type replacement func(before driver.Entry) (last driver.Entry, next, former func() *sqlstore.Store)

var copies = map[string]func(t *testing.T) (*sqlstore.Store, replacement){
	"a promoted standby":            promoted,
	"a replica that takes over":     takenOver,
	"a database that is made again": madeAgain,
}

func promoted(t *testing.T) (*sqlstore.Store, replacement) {
	p := newPair(t)
	s := p.store()
	return s, func(before driver.Entry) (last driver.Entry, next, former func() *sqlstore.Store) {
		p.separate(s, "k")
		_, err := s.CompareAndSwap(t.Context(), "k", before.Version, []byte("lost"))
		must(t, err)
		last, err = s.Read(t.Context(), "k")
		must(t, err)
		p.failOver()
		return last, func() *sqlstore.Store { return s }, nil
	}
}

func takenOver(t *testing.T) (*sqlstore.Store, replacement) {
	primary := sqld.StartMariaDB(t, "--server-id=1", "--log-bin", "--gtid-strict-mode")
	replica := sqld.StartMariaDB(t, "--server-id=2", "--log-bin", "--gtid-strict-mode")
	host, port, err := net.SplitHostPort(primary.Address())
	must(t, err)
	run(t, primary.Open(t, "root", ""), "CREATE DATABASE app")
	admin := primary.Open(t, "root", "app")
	s := open(t, admin, sqlstore.MySQL())
	inspect(t, "without replicas", s, map[string]driver.Severity{"sync_binlog": driver.Warning})
	run(t, admin, "SET GLOBAL sync_binlog = 1")
	inspect(t, "with a binary log that is synced", s, nil)
	follower := replica.Open(t, "root", "")
	run(t, follower, fmt.Sprintf("CHANGE MASTER TO master_host = '%s', master_port = %s, master_user = 'root', "+
		"master_use_gtid = slave_pos", host, port), "START SLAVE")
	on := func(m *sqld.MariaDB) func() *sqlstore.Store {
		return func() *sqlstore.Store { return over(t, m.Open(t, "root", "app"), sqlstore.MySQL()) }
	}
	return s, func(before driver.Entry) (last driver.Entry, next, former func() *sqlstore.Store) {
		wait.Until(t, "the replica has the row", func() bool {
			var n int
			_ = follower.QueryRow("SELECT count(*) FROM app.tenure").Scan(&n)
			return n == 1
		})
		inspect(t, "with a replica", s, map[string]driver.Severity{"rpl_semi_sync_master_enabled": driver.Advice})
		must(t, primary.Kill())
		run(t, follower, "STOP SLAVE", "RESET SLAVE ALL")
		return before, on(replica), func() *sqlstore.Store {
			must(t, primary.Start())
			return on(primary)()
		}
	}
}

func madeAgain(t *testing.T) (*sqlstore.Store, replacement) {
	p := sqld.StartPostgres(t)
	admin := p.Open(t, "postgres", "postgres")
	run(t, admin, "CREATE DATABASE app")
	return open(t, p.Open(t, "postgres", "app"), sqlstore.Postgres()), func(before driver.Entry) (last driver.Entry, next, former func() *sqlstore.Store) {
		const alone = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = 'app'"
		run(t, admin, alone, "CREATE DATABASE copy TEMPLATE app", "DROP DATABASE app WITH (FORCE)", "CREATE DATABASE app TEMPLATE copy")
		return before, func() *sqlstore.Store { return over(t, p.Open(t, "postgres", "app"), sqlstore.Postgres()) }, nil
	}
}

// TestCopyIsAnotherEra: the copy may lack the latest writes. So its rows are unproven, and versions
// from before are refused. The original, if it comes back, lacks the writes to the copy.
func TestCopyIsAnotherEra(t *testing.T) {
	for name, start := range copies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s, replace := start(t)
			first, err := s.CompareAndSwap(ctx, "k", "", []byte("first"))
			must(t, err)
			before, err := s.Read(ctx, "k")
			must(t, err)
			last, next, former := replace(before)
			s = next()
			after := insist(t, func(ctx context.Context) (driver.Entry, error) { return s.Read(ctx, "k") })
			if string(after.Value) != "first" || !after.Unproven || after.Era == before.Era || before.Unproven {
				t.Errorf("before %+v, after %+v: want the first value, unproven, in another era", before, after)
			}
			if after.Floor <= last.Floor {
				t.Errorf("floor %d after %d: the token of a lost claim may recur", after.Floor, last.Floor)
			}
			for _, prev := range []driver.Version{first, last.Version, ""} {
				if _, err := s.CompareAndSwap(ctx, "k", prev, []byte("late")); !errors.Is(err, driver.ErrConflict) {
					t.Errorf("a write from version %q of the former era: got %v, want a conflict", prev, err)
				}
			}
			v, err := s.CompareAndSwap(ctx, "k", after.Version, []byte("next"))
			must(t, err)
			if e, err := s.Read(ctx, "k"); err != nil || e.Version != v || e.Unproven || e.Floor <= last.Floor {
				t.Errorf("got %+v, %v: want version %q, proven, with a floor above %d", e, err, v, last.Floor)
			}
			if former == nil {
				return
			}
			if e, err := former().Read(ctx, "k"); err != nil || !e.Unproven || e.Era != before.Era || string(e.Value) != "first" {
				t.Errorf("the original: %+v, %v: want the value, unproven", e, err)
			}
		})
	}
}

// TestEachStandbyHasItsOwnEra: two standbys of one primary are promoted to timelines of the same
// number.
func TestEachStandbyHasItsOwnEra(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	_, err := open(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres()).CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
	fresh := func(p *sqld.Postgres) driver.Entry { // as for a process that has just started
		e, err := over(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres()).Read(t.Context(), "k")
		must(t, err)
		return e
	}
	a, b := p.Standby(t), p.Standby(t)
	must(t, p.Stop()) // both have its last write
	eras := map[uint64]string{}
	for name, s := range map[string]*sqld.Postgres{"the first": a, "the second": b} {
		s.Promote(t)
		e := fresh(s)
		if other, known := eras[e.Era]; known || !e.Unproven || string(e.Value) != "first" {
			t.Errorf("%s standby: %+v, with the era of %q", name, e, other)
		}
		eras[e.Era] = name
	}
	must(t, a.Kill())
	must(t, a.Start())
	if e := fresh(a); eras[e.Era] != "" {
		t.Errorf("the first standby has, after another one took over, the era of %q", eras[e.Era])
	}
}

// loseAClaim leaves a leader whose claim the promoted standby lacks. The record there is a release.
func (p *pair) loseAClaim(ctx context.Context, lease time.Duration, opts ...sqlstore.Option) *tenure.Term {
	p.t.Helper()
	p.release(ctx, opts...)
	term := <-joins(p.t, ctx, p.store(opts...), tenure.Config{ID: "second", Lease: lease}).leads
	p.failOver()
	return term
}

// release separates the standby when the record is a release.
func (p *pair) release(ctx context.Context, opts ...sqlstore.Option) {
	p.t.Helper()
	s := p.store(opts...)
	short, stop := context.WithCancel(ctx)
	// Before its claim it waits for its own short lease.
	m := joins(p.t, short, s, tenure.Config{ID: "first", Lease: time.Second})
	<-m.leads
	stop()
	<-m.gone // its release is written
	p.separate(s, "billing")
}

// TestFreshMemberWaitsOutALostClaim: a member that starts after the loss does not know the claim.
func TestFreshMemberWaitsOutALostClaim(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newPair(t)
	const lease = 4 * time.Second
	lost := p.loseAClaim(ctx, lease)
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
	lost := p.loseAClaim(ctx, lease, sqlstore.WithEra("''"))
	<-joins(t, ctx, p.store(sqlstore.WithEra("''")), tenure.Config{ID: "fresh", Lease: lease}).leads
	if err := lost.Err(); err != nil {
		t.Errorf("the term of the lost claim has ended (%v): the test above proves nothing", err)
	}
}

// TestRestartedPrimaryIsAnotherEra: after a failover the former primary is started again, without
// pg_rewind. It lacks the writes of the standby.
func TestRestartedPrimaryIsAnotherEra(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newPair(t)
	p.release(ctx)
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

// TestLeaderGoesOnAfterAPromotion: if the standby has the claim of the leader, a promotion costs no
// leader.
func TestLeaderGoesOnAfterAPromotion(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	s := p.store()
	e, err := tenure.New(s, "billing", tenure.Config{ID: "a", Lease: time.Second})
	must(t, err)
	term, err := e.Campaign(t.Context()) // the first candidate waits for its lease
	must(t, err)
	must(t, term.Resign(t.Context()))
	// The long lease gives a slow machine time for the promotion.
	e, err = tenure.New(s, "billing", tenure.Config{ID: "b", Lease: 10 * time.Minute, Tuning: tenure.Tuning{Renew: time.Second}})
	must(t, err)
	term, err = e.Campaign(t.Context())
	must(t, err)
	p.separate(s, "billing")
	p.failOver()
	wait.Until(t, "the leader has renewed in the new era", func() bool {
		now, err := s.Read(t.Context(), "billing")
		return err == nil && !now.Unproven
	})
	if err := term.Err(); err != nil {
		t.Errorf("the leader: %v", err)
	}
	must(t, term.Resign(t.Context()))
}

// opens lets three members elect a leader.
func opens(t *testing.T, store func() driver.Store) *reign.Reign {
	t.Helper()
	r := reign.New(t, "billing", asking.ByTerm)
	for _, id := range []string{"a", "b", "c"} {
		r.Join(store(), nil, tenure.Config{ID: id, Lease: 2 * time.Second})
	}
	r.Leader(0)
	return r
}

// TestRealElectionsThroughAFailover: the primary dies, a standby without its last writes takes
// over, and new members join.
func TestRealElectionsThroughAFailover(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	r := opens(t, func() driver.Store { return p.store() })
	p.separate(p.store(), "billing")
	r.Leads()
	p.failOver()
	r.Join(p.store(), nil, tenure.Config{ID: "fresh", Lease: 2 * time.Second})
	r.Leads()
}

// TestRealElectionsOnAFullDisk: the server cannot write its log, and ends or refuses writes. When
// there is space again, a member leads again.
func TestRealElectionsOnAFullDisk(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgresOnSmallDisk(t)
	open(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres())
	r := opens(t, func() driver.Store { return over(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres()) })
	operator := p.Open(t, "postgres", "postgres")
	free := p.Fill(t)
	for n := 0; ; n++ {
		if _, err := operator.Exec("SELECT pg_switch_wal(), pg_logical_emit_message(false, 'fill', repeat('x', 1000000))"); err != nil {
			t.Logf("after %d: %v", n, err)
			break
		}
	}
	// No renewal is confirmed any more, unless the server finds space in its own log.
	for r.Leading() && operator.Ping() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	free()
	_ = p.Kill() // it may be in recovery without an end
	must(t, p.Start())
	r.Leads()
}
