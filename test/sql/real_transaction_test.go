//go:build integration

package sql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq" // the driver postgres, which hands out sessions with open transactions
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// forgetful returns a pool of one connection, for each driver of PostgreSQL.
func forgetful(t *testing.T, p *sqld.Postgres, name string) *sql.DB {
	t.Helper()
	db := sqld.Open(t, name, p.DSN("postgres", "postgres")+"?sslmode=disable")
	db.SetMaxOpenConns(1)
	return db
}

// TestRealWriteInAnOpenTransaction: a service begins a transaction by SQL text and forgets it. Then
// no write of the store counts, the store believes no uncommitted row, and the transaction of the
// service goes on.
func TestRealWriteInAnOpenTransaction(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	admin := p.Open(t, "postgres", "postgres")
	outside := open(t, admin, sqlstore.Postgres())
	run(t, admin, "CREATE TABLE orders (n int)")
	for _, name := range []string{"postgres", "pgx"} {
		for _, c := range []struct {
			key, begin string
			notify     []sqlstore.Option
		}{
			{"before any write", "BEGIN", nil},
			{"after a write", "BEGIN; INSERT INTO orders VALUES (1)", nil},
			{"in a serializable one", "BEGIN ISOLATION LEVEL SERIALIZABLE", nil},
			{"in a savepoint", "BEGIN; SAVEPOINT s", nil},
			{"with notifications", "BEGIN", []sqlstore.Option{sqlstore.WithNotifications()}},
		} {
			key := name + " " + c.key
			db := forgetful(t, p, name)
			s := over(t, db, sqlstore.Postgres(), c.notify...)
			v, err := s.CompareAndSwap(t.Context(), key, "", []byte("first"))
			must(t, err)
			run(t, db, c.begin)
			for _, prev := range []driver.Version{v, ""} {
				_, err := s.CompareAndSwap(t.Context(), key, prev, []byte("second"))
				if e, outer := outside.Read(t.Context(), key); outer != nil || err == nil && string(e.Value) != "second" {
					t.Errorf("%s: a write is acknowledged, and others read %q, %v", key, e.Value, outer)
				}
			}
			if name == "pgx" {
				continue // it closes such a connection
			}
			if e, err := s.Read(t.Context(), key); err == nil && string(e.Value) == "second" {
				t.Errorf("%s: a read shows a write that is not committed", key)
			} else if err != nil && !strings.Contains(err.Error(), "uncommitted writes is open on this connection") {
				t.Errorf("%s: a read: %v", key, err)
			}
			run(t, db, "INSERT INTO orders VALUES (2)", "COMMIT")
		}
	}
	var orders int
	must(t, admin.QueryRow("SELECT count(*) FROM orders WHERE n = 2").Scan(&orders))
	if orders != 5 {
		t.Errorf("%d of 5 transactions of the service were committed", orders)
	}
}

// TestRealFenceInAnOpenTransaction: a fence that was raised in such a session stands for no other
// one, so an older term could go on to commit.
func TestRealFenceInAnOpenTransaction(t *testing.T) {
	t.Parallel()
	p, m := sqld.StartPostgres(t), sqld.MariaDBSite(t)
	held, _ := term(t, 7, time.Minute)
	for name, c := range map[string]struct {
		db      *sql.DB
		dialect sqlstore.Dialect
	}{
		"postgres": {forgetful(t, p, "postgres"), sqlstore.Postgres()},
		"mariadb":  {m.Pool(t), sqlstore.MySQL()},
	} {
		c.db.SetMaxOpenConns(1)
		_, err := sqlstore.OpenFence(t.Context(), held, c.db, c.dialect, sqlstore.FenceCreate(), sqlstore.FenceName("made"))
		must(t, err)
		run(t, c.db, "BEGIN")
		if _, err := sqlstore.OpenFence(t.Context(), held, c.db, c.dialect); !errors.Is(err, sqlstore.ErrUnfit) {
			t.Errorf("%s: got %v, want one that wraps ErrUnfit", name, err)
		}
	}
}

// TestRealForgottenTransactionEndsTheTerm: the renewals of a leader run in a transaction that its
// process forgot. When the session ends they roll back together, and a follower that waited for the
// row wins at once. By then the leader's term must be over.
func TestRealForgottenTransactionEndsTheTerm(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	open(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const lease = 2 * time.Second
	db := forgetful(t, p, "postgres")
	old := <-joins(t, ctx, over(t, db, sqlstore.Postgres()), tenure.Config{ID: "a", Lease: lease}).leads
	run(t, db, "BEGIN")
	next := joins(t, ctx, over(t, p.Open(t, "postgres", "postgres"), sqlstore.Postgres()), tenure.Config{ID: "b", Lease: lease})
	<-old.LeaseContext().Done()
	must(t, db.Close())
	if <-next.leads; old.Err() == nil {
		t.Error("two leaders")
	}
}

// saboteurs are objects of a database that acknowledge an UPDATE of the table and change what it
// writes.
var saboteurs = map[string]map[string][]string{
	"postgres": {
		"a trigger that returns the old row": {
			"CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'",
			"CREATE TRIGGER sabotage BEFORE UPDATE ON tenure FOR EACH ROW EXECUTE FUNCTION sabotage()",
		},
		"a trigger that puts the old row back": {
			"CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF pg_trigger_depth() = 1 THEN UPDATE tenure " +
				"SET value = OLD.value, version = OLD.version WHERE name = OLD.name; END IF; RETURN NULL; END'",
			"CREATE TRIGGER sabotage AFTER UPDATE ON tenure FOR EACH ROW EXECUTE FUNCTION sabotage()",
		},
		"a trigger that changes the value": {
			"CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.value = ''other''; RETURN NEW; END'",
			"CREATE TRIGGER sabotage BEFORE UPDATE ON tenure FOR EACH ROW EXECUTE FUNCTION sabotage()",
		},
		"a view whose trigger does nothing": {
			"ALTER TABLE tenure RENAME TO real_tenure", "CREATE VIEW tenure AS SELECT * FROM real_tenure",
			"CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
			"CREATE TRIGGER sabotage INSTEAD OF UPDATE ON tenure FOR EACH ROW EXECUTE FUNCTION sabotage()",
		},
		"a rule that updates another table": {
			"CREATE TABLE other (LIKE tenure)", "INSERT INTO other SELECT * FROM tenure",
			"CREATE RULE sabotage AS ON UPDATE TO tenure DO INSTEAD UPDATE other SET value = NEW.value WHERE name = NEW.name",
		},
	},
	"mariadb": {
		"a trigger that keeps the version": {
			"CREATE TRIGGER sabotage BEFORE UPDATE ON tenure FOR EACH ROW SET NEW.version = OLD.version, NEW.value = OLD.value",
		},
		"a trigger that changes the value": {
			"CREATE TRIGGER sabotage BEFORE UPDATE ON tenure FOR EACH ROW SET NEW.value = 'other'",
		},
	},
}

// TestRealChangedWritesAreNotConfirmed: the database acknowledges one row, and the row is not as it
// was written.
func TestRealChangedWritesAreNotConfirmed(t *testing.T) {
	t.Parallel()
	p, m := sqld.StartPostgres(t), sqld.MariaDBSite(t)
	for name, objects := range saboteurs {
		for what, statements := range objects {
			var db *sql.DB
			dialect := sqlstore.Postgres()
			if name == "postgres" {
				run(t, p.Open(t, "postgres", "postgres"), "DROP DATABASE IF EXISTS app", "CREATE DATABASE app")
				db = p.Open(t, "postgres", "app")
			} else {
				db, dialect = m.Pool(t), sqlstore.MySQL()
				run(t, db, "DROP TABLE IF EXISTS tenure")
			}
			s := open(t, db, dialect)
			v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
			must(t, err)
			run(t, db, statements...)
			if now, err := s.Read(t.Context(), "k"); err == nil {
				v = now.Version // a view is another table, so another era
			}
			if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("second")); !uncertain(err) {
				t.Errorf("%s, %s: got %v, want an uncertain outcome", name, what, err)
			}
			found, err := s.Inspect(t.Context(), time.Minute)
			must(t, err)
			named := false
			for _, f := range found {
				named = named || strings.Contains(f.Problem, "sabotage") || strings.Contains(f.Problem, "no ordinary table")
			}
			if !named {
				t.Errorf("%s, %s: Inspect finds %v", name, what, found)
			}
			must(t, db.Close())
		}
	}
}

// TestRealUnsafeSessionsAreRefused: a shared pool may have sessions in which a write does not
// commit, or in which a read sees uncommitted data. The store neither writes nor believes anything
// there, whichever expression names the era.
func TestRealUnsafeSessionsAreRefused(t *testing.T) {
	t.Parallel()
	site := sqld.MariaDBSite(t)
	for name, era := range map[string][]sqlstore.Option{"the dialect": nil, "the program": {sqlstore.WithEra("'mine'")}} {
		for _, leak := range []string{
			"BEGIN", "SET SESSION autocommit = 0", "SET SESSION completion_type = 1",
			"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
		} {
			key := leak + ", era of " + name
			db := site.Pool(t)
			db.SetMaxOpenConns(1)
			s := open(t, db, site.Dialect, era...)
			v, err := s.CompareAndSwap(t.Context(), key, "", []byte("first"))
			must(t, err)
			run(t, db, leak)
			if _, err := s.Read(t.Context(), key); err == nil || !strings.Contains(err.Error(), "completion_type = NO_CHAIN") {
				t.Errorf("a read after %s: %v", key, err)
			}
			if _, err := s.CompareAndSwap(t.Context(), key, v, []byte("second")); err == nil {
				t.Errorf("a write after %s is acknowledged", key)
			}
			if e, err := open(t, site.Pool(t), site.Dialect, era...).Read(t.Context(), key); err != nil || string(e.Value) != "first" {
				t.Errorf("after %s others read %q, %v", key, e.Value, err)
			}
		}
	}
}

// TestRealSessionInAnotherDatabase: a session that was left in another database finds a table with
// the same name there.
func TestRealSessionInAnotherDatabase(t *testing.T) {
	t.Parallel()
	site := sqld.MariaDBSite(t)
	db := site.Pool(t)
	db.SetMaxOpenConns(1)
	s := open(t, db, site.Dialect)
	v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
	before, err := s.Read(t.Context(), "k")
	must(t, err)
	run(t, db, "CREATE DATABASE other", "CREATE TABLE other.tenure LIKE tenure", "INSERT INTO other.tenure SELECT * FROM tenure", "USE other")
	if e, err := s.Read(t.Context(), "k"); err != nil || e.Era == before.Era || !e.Unproven {
		t.Errorf("a read elsewhere: %+v, %v", e, err)
	}
	if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("second")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a write elsewhere: %v", err)
	}
}

// TestRealTwinInTheSearchPath: PostgreSQL creates a table in the first schema of the search path,
// and uses one in any of them.
func TestRealTwinInTheSearchPath(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	admin := p.Open(t, "postgres", "postgres")
	run(t, admin, "CREATE SCHEMA svc")
	open(t, admin, sqlstore.Postgres(), sqlstore.WithTable("public.tenure"))
	dsn := p.DSN("postgres", "postgres") + "?search_path=svc,public"
	db := sqld.Open(t, "pgx", dsn)
	db.SetMaxOpenConns(1)
	s := over(t, db, sqlstore.Postgres())
	v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("0"))
	must(t, err)
	for range 8 { // until plans are kept
		v, err = s.CompareAndSwap(t.Context(), "k", v, []byte("again"))
		must(t, err)
	}
	open(t, sqld.Open(t, "pgx", dsn), sqlstore.Postgres())
	var twin bool
	must(t, admin.QueryRow("SELECT to_regclass('svc.tenure') IS NOT NULL").Scan(&twin))
	if twin {
		t.Fatal("Create made a second table")
	}
	run(t, admin, "CREATE TABLE svc.tenure (LIKE public.tenure INCLUDING ALL)")
	if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("in the first table")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a session with kept plans writes to the first table beside the second: %v", err)
	}
	inspect(t, "twins", over(t, sqld.Open(t, "pgx", dsn), sqlstore.Postgres()), map[string]driver.Severity{"search_path": driver.Unsafe})
	found, err := s.Inspect(t.Context(), time.Minute)
	if err != nil || len(found) != 1 {
		t.Errorf("found %v, %v", found, err)
	}
}

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
