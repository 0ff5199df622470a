package sql

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

// heldTerm is a term that its owner believes in until it is over.
type heldTerm struct {
	token uint64
	over  context.Context
	left  time.Duration
}

// term returns a term of the election billing, and a function that ends it.
func term(t testing.TB, token uint64, left time.Duration) (heldTerm, func()) {
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(end)
	return heldTerm{token, ctx, left}, end
}

func (h heldTerm) Token() uint64            { return h.token }
func (h heldTerm) Election() string         { return "billing" }
func (h heldTerm) Remaining() time.Duration { return h.left }

func (h heldTerm) Err() error {
	if h.over.Err() != nil {
		return driver.ErrLost
	}
	return nil
}

func (h heldTerm) Do(ctx context.Context, _ time.Duration, fn func(context.Context) error) error {
	if err := h.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.over, cancel)()
	return fn(ctx)
}

// ledger is a table that leaders write to.
type ledger struct {
	db      *sql.DB
	dialect sqlstore.Dialect
	insert  string
	pause   string // lets a transaction last a while; may be empty
}

func sqliteLedger(t testing.TB) ledger {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "ledger.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	run(t, db, "CREATE TABLE entries (id INTEGER PRIMARY KEY, term INTEGER)")
	return ledger{db, sqlstore.SQLite(), "INSERT INTO entries (term) VALUES (?)", ""}
}

func (l ledger) open(t testing.TB, h driver.Term, opts ...sqlstore.FenceOption) *sqlstore.Fence {
	t.Helper()
	f, err := sqlstore.OpenFence(t.Context(), h, l.db, l.dialect, append(opts, sqlstore.FenceCreate())...)
	must(t, err)
	return f
}

// write inserts one entry in a transaction of the fence.
func (l ledger) write(ctx context.Context, f *sqlstore.Fence, token uint64, opts *sql.TxOptions) error {
	return f.Do(ctx, opts, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, l.insert, token)
		if err == nil && l.pause != "" {
			_, err = tx.ExecContext(ctx, l.pause)
		}
		return err
	})
}

// terms returns the terms of all entries, in the order of the inserts.
func (l ledger) terms(t testing.TB) []uint64 {
	t.Helper()
	rows, err := l.db.QueryContext(t.Context(), "SELECT term FROM entries ORDER BY id")
	must(t, err)
	defer func() { _ = rows.Close() }()
	var all []uint64
	for rows.Next() {
		var n uint64
		must(t, rows.Scan(&n))
		all = append(all, n)
	}
	must(t, rows.Err())
	return all
}

func TestFenceRefusesAnOlderTerm(t *testing.T) {
	l := sqliteLedger(t)
	first, _ := term(t, 7, time.Second)
	second, _ := term(t, 9, time.Second)
	old := l.open(t, first)
	must(t, l.write(t.Context(), old, 7, nil))
	next := l.open(t, second)
	if err := l.write(t.Context(), old, 7, nil); !errors.Is(err, sqlstore.ErrFenced) || !errors.Is(err, driver.ErrLost) {
		t.Errorf("a write of the older term: %v", err)
	}
	must(t, l.write(t.Context(), next, 9, nil))
	if _, err := sqlstore.OpenFence(t.Context(), first, l.db, l.dialect); !errors.Is(err, sqlstore.ErrFenced) {
		t.Errorf("the older term opens again: %v", err)
	}
	if again := l.open(t, second); l.write(t.Context(), again, 9, nil) != nil {
		t.Error("the same term cannot open twice")
	}
	if got := l.terms(t); len(got) != 3 {
		t.Errorf("entries of the terms %v", got)
	}
}

// TestFenceRollsBack: a transaction that ends by an error, a panic, or the end of its term leaves
// nothing behind.
func TestFenceRollsBack(t *testing.T) {
	l := sqliteLedger(t)
	held, end := term(t, 7, time.Second)
	f := l.open(t, held)
	own := errors.New("the work has failed")
	work := func(then func() error) func(context.Context, *sql.Tx) error {
		return func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, l.insert, 7); err != nil {
				return err
			}
			return then()
		}
	}
	if err := f.Do(t.Context(), nil, work(func() error { return own })); !errors.Is(err, own) || errors.Is(err, sqlstore.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = f.Do(t.Context(), nil, work(func() error { panic("the work panics") }))
	}()
	if err := f.Do(t.Context(), nil, work(func() error { end(); return nil })); err == nil || errors.Is(err, sqlstore.ErrUnknown) {
		t.Errorf("the term ends before the commit: %v", err)
	}
	if err := l.write(t.Context(), f, 7, nil); !errors.Is(err, driver.ErrLost) {
		t.Errorf("after the term: %v", err)
	}
	if got := l.terms(t); len(got) != 0 {
		t.Errorf("entries of the terms %v", got)
	}
}

// TestFenceRefusesAttachedFiles: the fence guards one file. A transaction that writes to another
// one could commit after a newer term.
func TestFenceRefusesAttachedFiles(t *testing.T) {
	l := sqliteLedger(t)
	held, _ := term(t, 7, time.Second)
	attach := "ATTACH '" + filepath.Join(t.TempDir(), "other.db") + "' AS other"
	f := l.open(t, held)
	err := f.Do(t.Context(), nil, func(ctx context.Context, tx *sql.Tx) error {
		for _, statement := range []string{attach, "CREATE TABLE other.entries (term)", "INSERT INTO other.entries VALUES (7)"} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, sqlstore.ErrUnfit) || !strings.Contains(err.Error(), "other is attached") {
		t.Errorf("work that attaches a file: %v", err)
	}
	l.db.SetMaxOpenConns(1)
	run(t, l.db, "DETACH other", attach)
	var n int
	if err := l.db.QueryRow("SELECT count(*) FROM other.sqlite_master").Scan(&n); err != nil || n != 0 {
		t.Errorf("the attached file has %d tables, %v", n, err)
	}
	if _, err := sqlstore.OpenFence(t.Context(), held, l.db, l.dialect); !errors.Is(err, sqlstore.ErrUnfit) {
		t.Errorf("a fence beside an attached file: %v", err)
	}
}

// ending is an error of a database by its code, as pgx has it.
type ending string

func (e ending) Error() string    { return "the commit ends with " + string(e) }
func (e ending) SQLState() string { return string(e) }

// TestFenceWhenACommitFails: only an error that proves a rollback is reported as one, even if a
// newer term has opened its fence by then.
func TestFenceWhenACommitFails(t *testing.T) {
	for code, known := range map[string]bool{"5": true, "19": true, "10": false, "": false} {
		l := sqliteLedger(t)
		first, _ := term(t, 7, time.Second)
		second, _ := term(t, 9, time.Second)
		f := l.open(t, first)
		err := f.Run(t.Context(), func(ctx context.Context) (sqlstore.Transaction, func() error, error) {
			tx, err := l.db.BeginTx(ctx, nil)
			return sqlstore.Transaction{
				Query: func(ctx context.Context, query string, args ...any) sqlstore.Row {
					return tx.QueryRowContext(ctx, query, args...)
				},
				Commit: func(context.Context) error {
					_ = tx.Rollback()
					l.open(t, second)
					return ending(code)
				},
			}, func() error { return nil }, err
		})
		if errors.Is(err, sqlstore.ErrUnknown) == known || errors.Is(err, sqlstore.ErrFenced) != known {
			t.Errorf("a commit that ends with %q: %v", code, err)
		}
	}
}

// TestFenceAcrossARaise: a transaction began before a newer term opened, and writes after it.
func TestFenceAcrossARaise(t *testing.T) {
	l := sqliteLedger(t)
	first, _ := term(t, 7, time.Second)
	second, _ := term(t, 9, time.Second)
	old := l.open(t, first)
	err := old.Do(t.Context(), nil, func(ctx context.Context, tx *sql.Tx) error {
		l.open(t, second)
		_, err := tx.ExecContext(ctx, l.insert, 7)
		return err
	})
	if !errors.Is(err, sqlstore.ErrFenced) {
		t.Errorf("got %v", err)
	}
	if got := l.terms(t); len(got) != 0 {
		t.Errorf("entries of the terms %v", got)
	}
}

func TestMissingFence(t *testing.T) {
	l := sqliteLedger(t)
	held, _ := term(t, 7, time.Second)
	for _, harm := range []string{"DELETE FROM tenure_fence", "UPDATE tenure_fence SET term = 3 WHERE step = 2"} {
		f := l.open(t, held)
		run(t, l.db, harm)
		err := l.write(t.Context(), f, 7, nil)
		if err == nil || errors.Is(err, sqlstore.ErrFenced) || !strings.Contains(err.Error(), "open another one") {
			t.Errorf("%s: %v", harm, err)
		}
		run(t, l.db, "DELETE FROM tenure_fence")
	}
}

func TestFenceSettings(t *testing.T) {
	l := sqliteLedger(t)
	held, _ := term(t, 7, time.Second)
	for _, c := range []struct {
		want string
		opts []sqlstore.FenceOption
	}{
		{`CREATE TABLE IF NOT EXISTS "tenure_fence"`, nil},
		{"more than one dot", []sqlstore.FenceOption{sqlstore.FenceTable("a.b.c")}},
		{"less than 1ms", []sqlstore.FenceOption{sqlstore.FenceLimit(1)}},
		{"0 bytes", []sqlstore.FenceOption{sqlstore.FenceName("")}},
	} {
		if _, err := sqlstore.OpenFence(t.Context(), held, l.db, l.dialect, c.opts...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
	a := l.open(t, held, sqlstore.FenceTable("other"), sqlstore.FenceName("x"))
	newer, _ := term(t, 9, time.Second)
	l.open(t, newer, sqlstore.FenceTable("other"))
	must(t, l.write(t.Context(), a, 7, nil)) // a fence with another name
}
