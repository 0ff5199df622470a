//go:build integration

package sql

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// court records the terms of an election, and checks each as it begins.
type court struct {
	t     *testing.T
	began chan uint64

	mu    sync.Mutex
	terms []*tenure.Term
}

// lead fails the test if another term may still act, or has a higher token.
func (c *court) lead(ctx context.Context, term *tenure.Term) error {
	c.mu.Lock()
	for _, former := range c.terms {
		if former.Err() == nil {
			c.t.Errorf("two leaders: tokens %d and %d", former.Token(), term.Token())
		}
		if former.Token() >= term.Token() {
			c.t.Errorf("token %d after %d", term.Token(), former.Token())
		}
	}
	c.terms = append(c.terms, term)
	c.mu.Unlock()
	select {
	case c.began <- term.Token():
	case <-ctx.Done():
	}
	<-ctx.Done()
	return nil
}

// leading reports whether a term may act.
func (c *court) leading() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.terms) > 0 && c.terms[len(c.terms)-1].Err() == nil
}

// opens starts three members of an election, and waits for a leader.
func opens(t *testing.T, ctx context.Context, store func() *sqlstore.Store) *court {
	t.Helper()
	c := &court{t: t, began: make(chan uint64)}
	var members sync.WaitGroup
	t.Cleanup(members.Wait)
	for _, id := range []string{"a", "b", "c"} {
		e, err := tenure.New(store(), "billing", tenure.Config{ID: id, Lease: 2 * time.Second})
		must(t, err)
		members.Go(func() { _ = e.Run(ctx, c.lead) })
	}
	<-c.began
	return c
}

// settles waits until a member leads again, or still does.
func (c *court) settles() {
	for !c.leading() {
		select {
		case <-c.began:
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestRealElectionsWhileSessionsAreKilled: an operator ends all sessions of the database many
// times.
func TestRealElectionsWhileSessionsAreKilled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := sqld.StartPostgres(t)
	open(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres())
	c := opens(t, ctx, func() *sqlstore.Store { return over(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres()) })
	operator := p.Open(t, "postgres", "postgres")
	ended := 0
	for ended < 50 {
		var n int
		err := operator.QueryRow("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity " +
			"WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()").Scan(&n)
		must(t, err)
		ended += n
	}
	c.settles()
}

// TestRealElectionsBehindAPoolerThatRestarts: all connections break, and come back.
func TestRealElectionsBehindAPoolerThatRestarts(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"session", "transaction"} {
		t.Run(mode, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := sqld.StartPostgres(t)
			b := sqld.StartPgBouncer(t, p, mode)
			pool := func() *sqlstore.Store {
				return over(t, sqld.Open(t, "pgx", b.DSN("postgres", "postgres")), sqlstore.Postgres())
			}
			must(t, pool().Create(ctx))
			c := opens(t, ctx, pool)
			for range 3 {
				must(t, b.Kill())
				must(t, b.Start())
				c.settles()
			}
		})
	}
}

// TestRealElectionsThroughAFailover: the primary dies, a standby without its last writes takes
// over, and new members join.
func TestRealElectionsThroughAFailover(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newPair(t)
	c := opens(t, ctx, func() *sqlstore.Store { return p.store() })
	p.separate(p.store(), "billing")
	c.settles()
	p.failOver()
	fresh, err := tenure.New(p.store(), "billing", tenure.Config{ID: "fresh", Lease: 2 * time.Second})
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = fresh.Run(ctx, c.lead)
	}()
	t.Cleanup(func() { <-done })
	c.settles()
}

// TestRealElectionsOnAFullDisk: the server cannot write its log, and ends or refuses writes. When
// there is space again, a member leads again.
func TestRealElectionsOnAFullDisk(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := sqld.StartPostgresOnSmallDisk(t)
	open(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres())
	c := opens(t, ctx, func() *sqlstore.Store { return over(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres()) })
	operator := p.Open(t, "postgres", "postgres")
	free := p.Fill(t)
	for n := 0; ; n++ {
		if _, err := operator.Exec("SELECT pg_switch_wal(), pg_logical_emit_message(false, 'fill', repeat('x', 1000000))"); err != nil {
			t.Logf("after %d: %v", n, err)
			break
		}
	}
	// No renewal is confirmed any more, unless the server finds space in its own log.
	for c.leading() && operator.Ping() != nil {
		select {
		case <-c.began:
		case <-time.After(10 * time.Millisecond):
		}
	}
	free()
	_ = p.Kill() // it may be in recovery without an end
	must(t, p.Start())
	c.settles()
}
