//go:build integration

package sql

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// ledgers are tables of leaders on real servers, and in a file.
var ledgers = map[string]func(t testing.TB) ledger{
	"postgres": func(t testing.TB) ledger {
		db := sqld.StartPostgres(t).Open(t, "postgres", "postgres")
		run(t, db, "CREATE TABLE entries (id bigserial PRIMARY KEY, term bigint)")
		return ledger{db, sqlstore.Postgres(), "INSERT INTO entries (term) VALUES ($1)", "SELECT pg_sleep(0.1)"}
	},
	"mariadb": func(t testing.TB) ledger {
		s := sqld.MariaDBSite(t)
		db := s.Pool(t)
		run(t, db, "CREATE TABLE entries (id bigint AUTO_INCREMENT PRIMARY KEY, term bigint)")
		return ledger{db, s.Dialect, "INSERT INTO entries (term) VALUES (?)", "DO sleep(0.1)"}
	},
	"sqlite": sqliteLedger,
}

var isolationLevels = map[string][]sql.IsolationLevel{
	"postgres": {sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
	"mariadb":  {sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
	"sqlite":   {sql.LevelDefault},
}

func (l ledger) count(t testing.TB, token uint64) (n int) {
	t.Helper()
	for _, term := range l.terms(t) {
		if term == token {
			n++
		}
	}
	return n
}

// former is eight workers of a leader that does not know that its term is over, as after a pause.
// Each writes until it was refused often enough.
type former struct {
	commits, refused atomic.Int64
	all              sync.WaitGroup
	stop             atomic.Bool
}

const (
	workers  = 8
	refusals = 10_000 / (3 + 4 + 1) / workers // of each worker at each isolation level
)

func (f *former) work(write func() error) {
	for range workers {
		f.all.Go(func() {
			for n := 0; n < refusals && !f.stop.Load(); {
				switch err := write(); {
				case err == nil:
					f.commits.Add(1)
				case errors.Is(err, sqlstore.ErrFenced):
					f.refused.Add(1)
					n++
				}
			}
		})
	}
}

// reach waits until the leader has committed this many times.
func (f *former) reach(commits int64) {
	for f.commits.Load() < commits {
		time.Sleep(time.Millisecond)
	}
}

// TestRealFenceStopsAFormerLeader: a newer term opens its fence while transactions of the former
// one overlap all the time, and they do not starve it. From then on none of them is committed.
func TestRealFenceStopsAFormerLeader(t *testing.T) {
	for name, start := range ledgers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t)
			token := uint64(1)
			for _, level := range isolationLevels[name] {
				t.Run(level.String(), func(t *testing.T) {
					first, _ := term(t, token, 15*time.Second)
					second, _ := term(t, token+1, 15*time.Second)
					f, opts, former := l.open(t, first), &sql.TxOptions{Isolation: level}, new(former)
					former.work(func() error { return l.write(t.Context(), f, first.token, opts) })
					former.reach(3 * workers)
					next := l.open(t, second)
					then := l.count(t, first.token)
					must(t, l.write(t.Context(), next, second.token, opts))
					former.all.Wait()
					if now := l.count(t, first.token); now != then {
						t.Errorf("%d of %d writes of the former leader came after the next one's first", now-then, former.refused.Load())
					}
				})
				token += 2
			}
		})
	}
}

// TestRealControlWithoutFence: with only a check of the lease, the same writes pass.
func TestRealControlWithoutFence(t *testing.T) {
	l := ledgers["postgres"](t)
	first, _ := term(t, 1, 15*time.Second)
	former := new(former)
	former.work(func() error {
		if err := first.Err(); err != nil {
			return err
		}
		_, err := l.db.ExecContext(t.Context(), l.insert, first.token)
		return err
	})
	former.reach(3 * workers)
	run(t, l.db, "INSERT INTO entries (term) VALUES (2)")
	then := l.count(t, 1)
	former.reach(former.commits.Load() + workers)
	former.stop.Store(true)
	former.all.Wait()
	if now := l.count(t, 1); now == then {
		t.Error("no write of the former leader came after the next one's first: this test shows nothing")
	}
}

// TestRealFenceOutlastsAFrozenLeader: a leader that is frozen within a transaction delays its
// successor only until its limit.
func TestRealFenceOutlastsAFrozenLeader(t *testing.T) {
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := ledgers[name](t)
			first, _ := term(t, 7, time.Second) // what is left of the lease is the limit
			second, _ := term(t, 9, time.Second)
			f := l.open(t, first)
			err := f.Do(t.Context(), nil, func(ctx context.Context, tx *sql.Tx) error {
				if _, err := tx.ExecContext(ctx, l.insert, 7); err != nil {
					return err
				}
				l.open(t, second) // while this leader does nothing
				return nil
			})
			if err == nil {
				t.Error("the frozen leader committed after its successor had opened")
			}
			if got := l.count(t, 7); got != 0 {
				t.Errorf("%d entries of the frozen leader", got)
			}
		})
	}
}

// TestRealFenceOfPGX: the same fence with transactions of pgx costs one statement more than none.
func TestRealFenceOfPGX(t *testing.T) {
	cfg, err := pgxpool.ParseConfig(sqld.StartPostgres(t).DSN("postgres", "postgres"))
	must(t, err)
	var statements tally
	cfg.ConnConfig.Tracer = &statements
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	must(t, err)
	t.Cleanup(pool.Close)
	l := ledger{stdlib.OpenDBFromPool(pool), sqlstore.Postgres(), "INSERT INTO entries (term) VALUES ($1)", ""}
	run(t, l.db, "CREATE TABLE entries (id bigserial PRIMARY KEY, term bigint)")
	first, _ := term(t, 7, time.Second)
	second, _ := term(t, 9, time.Second)
	f := l.open(t, first)
	write := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.insert, 7)
		return err
	}
	statements.n.Store(0)
	must(t, pgxstore.DoFenced(t.Context(), f, pool, pgx.TxOptions{}, write))
	if n := statements.n.Load(); n != 4 { // BEGIN, the check, the INSERT, COMMIT
		t.Errorf("%d statements", n)
	}
	err = pgxstore.DoFenced(t.Context(), f, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(ctx context.Context, tx pgx.Tx) error {
		_, ignored := tx.Exec(ctx, "SELECT nothing")
		_ = ignored
		return nil
	})
	if !errors.Is(err, sql.ErrTxDone) || errors.Is(err, sqlstore.ErrUnknown) {
		t.Errorf("the commit of a transaction that has failed: %v", err)
	}
	l.open(t, second)
	if err := pgxstore.DoFenced(t.Context(), f, pool, pgx.TxOptions{}, write); !errors.Is(err, sqlstore.ErrFenced) {
		t.Errorf("a write of the older term: %v", err)
	}
	if got := l.count(t, 7); got != 1 {
		t.Errorf("%d entries of the older term", got)
	}
}

// tally counts statements.
type tally struct{ n atomic.Int64 }

// TraceQueryStart counts one.
func (s *tally) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

// TraceQueryEnd does nothing.
func (s *tally) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// BenchmarkFence compares transactions of one INSERT, one after another, with and without a fence.
func BenchmarkFence(b *testing.B) {
	for name, start := range ledgers {
		l := start(b)
		first, _ := term(b, 7, time.Minute)
		f := l.open(b, first)
		insert := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, l.insert, 7)
			return err
		}
		b.Run(name, func(b *testing.B) {
			var plain, fenced figures.Dist
			for b.Loop() {
				began := time.Now()
				tx, err := l.db.BeginTx(b.Context(), nil)
				must(b, err)
				must(b, insert(b.Context(), tx))
				must(b, tx.Commit())
				done := time.Now()
				must(b, f.Do(b.Context(), nil, insert))
				plain, fenced = append(plain, done.Sub(began)), append(fenced, time.Since(done))
			}
			plain.Report(b, "plain-")
			fenced.Report(b, "fenced-")
		})
	}
}
