package sql

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

// uncertain reports whether an error leaves the outcome of a write open.
func uncertain(err error) bool {
	return err != nil && !errors.Is(err, driver.ErrConflict) && !errors.Is(err, driver.ErrDenied)
}

// wantRefused checks that each call fails and names the fault.
func wantRefused(t *testing.T, s *sqlstore.Store, want string) {
	t.Helper()
	for call, err := range calls(t.Context(), s) {
		if !uncertain(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", call, err, want)
		}
	}
}

// TestSQLiteFileWithTwoNamesIsRefused: the write-ahead log lies beside the name, so candidates that
// use two names do not see each other's writes.
func TestSQLiteFileWithTwoNamesIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "elections.db")
	_, s := openSQLite(t, file)
	must(t, os.Link(file, file+".link"))
	wantRefused(t, s, "2 hard links")
	held, _ := term(t, 7, time.Second)
	_, err := sqlstore.OpenFence(t.Context(), held, pool(t, file, ""), sqlstore.SQLite(), sqlstore.FenceCreate())
	if !errors.Is(err, sqlstore.ErrUnfit) || !strings.Contains(err.Error(), "2 hard links") {
		t.Errorf("a fence: %v", err)
	}
	must(t, os.Remove(file+".link"))
	if _, err := s.CompareAndSwap(t.Context(), "k", "", []byte("v")); err != nil {
		t.Errorf("with one name: %v", err)
	}
}

// TestSQLiteOpenTransaction: a service begins a transaction by SQL text and forgets it. No write of
// the store joins it, and it goes on.
func TestSQLiteOpenTransaction(t *testing.T) {
	db, s := openSQLite(t, filepath.Join(t.TempDir(), "elections.db"))
	db.SetMaxOpenConns(1)
	v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
	run(t, db, "CREATE TABLE orders (n)", "BEGIN", "INSERT INTO orders VALUES (1)")
	if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("second")); !uncertain(err) ||
		!strings.Contains(err.Error(), "a transaction is open on this connection") {
		t.Errorf("a write: %v", err)
	}
	if e, err := s.Read(t.Context(), "k"); err != nil || string(e.Value) != "first" {
		t.Errorf("a read: %+v, %v", e, err)
	}
	run(t, db, "COMMIT")
	var orders int
	if err := db.QueryRow("SELECT count(*) FROM orders").Scan(&orders); err != nil || orders != 1 {
		t.Errorf("the service has %d orders, %v", orders, err)
	}
	if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("second")); err != nil {
		t.Errorf("a write after the transaction: %v", err)
	}
}

// TestSQLiteChangedWriteIsNotConfirmed: a trigger keeps the old values.
func TestSQLiteChangedWriteIsNotConfirmed(t *testing.T) {
	for why, trigger := range map[string]string{
		"puts the old row back": "CREATE TRIGGER sabotage AFTER UPDATE ON tenure BEGIN " +
			"UPDATE tenure SET value = old.value, version = old.version WHERE name = old.name; END",
		"drops the update": "CREATE TRIGGER sabotage BEFORE UPDATE ON tenure BEGIN SELECT raise(IGNORE); END",
	} {
		db, s := openSQLite(t, filepath.Join(t.TempDir(), "elections.db"))
		v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
		must(t, err)
		run(t, db, trigger)
		if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("second")); err == nil {
			t.Errorf("a trigger that %s: the write is acknowledged", why)
		}
		found, err := s.Inspect(t.Context(), time.Minute)
		if err != nil || len(found) != 1 || !strings.Contains(found[0].Problem, "sabotage") {
			t.Errorf("a trigger that %s: Inspect finds %v, %v", why, found, err)
		}
	}
}

// TestSQLiteReplacedFile: an older copy of the file, which shows a release, takes its place beneath
// a leader. A fresh member waits, and the leader notices the replacement.
func TestSQLiteReplacedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		file := filepath.Join(t.TempDir(), "elections.db")
		member := func(ctx context.Context, id string) *member {
			pool := poolOfSQLite(t, file)
			context.AfterFunc(ctx, func() { _ = pool.Close() })
			return joins(t, ctx, over(t, pool, sqlstore.SQLite()), tenure.Config{ID: id, Lease: 15 * time.Second})
		}
		db, _ := openSQLite(t, file)
		short, stop := context.WithCancel(ctx)
		first := member(short, "a")
		<-first.leads
		stop()
		<-first.gone
		run(t, db, "VACUUM INTO '"+file+".copy'")
		must(t, db.Close())
		old := <-member(ctx, "b").leads
		must(t, os.Remove(file+"-wal"))
		must(t, os.Remove(file+"-shm"))
		must(t, os.Rename(file+".copy", file))
		oneLeads(t, old, member(ctx, "c"))
	})
}

// TestSQLiteReplacedFileInASharedPool: other code of the program has left connections in the pool
// that the store has not seen before the file was replaced.
func TestSQLiteReplacedFileInASharedPool(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: no list of the open files on this system")
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		file := filepath.Join(t.TempDir(), "elections.db")
		db, s := openSQLite(t, file)
		db.SetMaxIdleConns(5)
		old := <-joins(t, ctx, s, tenure.Config{ID: "a", Lease: 15 * time.Second}).leads
		var others []*sql.Conn
		for range 3 {
			conn, err := db.Conn(ctx)
			must(t, err)
			others = append(others, conn)
		}
		run(t, db, "VACUUM INTO '"+file+".copy'")
		for _, conn := range others {
			must(t, conn.Close())
		}
		must(t, os.Remove(file+"-wal"))
		must(t, os.Remove(file+"-shm"))
		must(t, os.Rename(file+".copy", file))
		copied := over(t, poolOfSQLite(t, file), sqlstore.SQLite())
		other := joins(t, ctx, copied, tenure.Config{ID: "b", Lease: 15 * time.Second})
		oneLeads(t, old, other)
	})
}

// TestSQLiteRenamedFile: the latest writes stay in the log beside the old name, and the file under
// the new name still shows the record that was released before.
func TestSQLiteRenamedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "elections.db")
		short, stop := context.WithCancel(t.Context())
		db, s := openSQLite(t, file)
		first := joins(t, short, s, tenure.Config{ID: "a", Lease: 15 * time.Second})
		<-first.leads
		stop()
		<-first.gone
		must(t, db.Close()) // puts the log into the file
		succeedsInTime(t, over(t, poolOfSQLite(t, file), sqlstore.SQLite()), func() *sqlstore.Store {
			must(t, os.Rename(file, file+".new"))
			return over(t, poolOfSQLite(t, file+".new"), sqlstore.SQLite())
		})
	})
}

// TestSQLiteChangedLink: a link in the path leads to another directory after a deployment.
func TestSQLiteChangedLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		link := filepath.Join(dir, "current")
		file := filepath.Join(link, "elections.db")
		to := func(release string) {
			must(t, os.MkdirAll(filepath.Join(dir, release), 0o700))
			must(t, os.Symlink(release, link+".new"))
			must(t, os.Rename(link+".new", link))
		}
		to("1")
		_, s := openSQLite(t, file, sqlstore.WithFile(file))
		succeedsInTime(t, s, func() *sqlstore.Store {
			to("2")
			_, s := openSQLite(t, file, sqlstore.WithFile(file))
			return s
		})
	})
}

// succeedsInTime checks that the term of a leader has ended when the leader of another store leads.
func succeedsInTime(t *testing.T, s *sqlstore.Store, other func() *sqlstore.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	old := <-joins(t, ctx, s, tenure.Config{ID: "b", Lease: 15 * time.Second}).leads
	next := joins(t, ctx, other(), tenure.Config{ID: "c", Lease: 15 * time.Second})
	<-next.leads
	if old.Err() == nil {
		t.Errorf("two leaders: the first one has %v left", old.Remaining())
	}
}

// oneLeads waits for some leases and checks that one of two leads: the leader, which may have gone
// on in the file that is there now, or the other member.
func oneLeads(t *testing.T, old *tenure.Term, other *member) {
	t.Helper()
	time.Sleep(time.Minute)
	leaders := 0
	if old.Err() == nil {
		leaders++
	}
	select {
	case term := <-other.leads:
		if term.Err() == nil {
			leaders++
		}
	default:
	}
	if leaders != 1 {
		t.Errorf("%d leaders", leaders)
	}
}

// TestSQLiteReplacedFileIsAnotherEra: the store reports the replacement once, and then uses the
// file that is there.
func TestSQLiteReplacedFileIsAnotherEra(t *testing.T) {
	file := filepath.Join(t.TempDir(), "elections.db")
	db, s := openSQLite(t, file)
	v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
	before, err := s.Read(t.Context(), "k")
	must(t, err)
	run(t, db, "VACUUM INTO '"+file+".copy'")
	must(t, os.Rename(file+".copy", file))
	for refused := 0; ; refused++ {
		now, err := s.Read(t.Context(), "k")
		if err != nil && strings.Contains(err.Error(), "was replaced, renamed or removed") {
			continue
		}
		if err != nil || refused == 0 || !now.Unproven || now.Era == before.Era || before.Unproven || string(now.Value) != "first" {
			t.Errorf("after %d refusals: before %+v, now %+v, %v: want another era, and an unproven value", refused, before, now, err)
		}
		break
	}
	if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("late")); err == nil {
		t.Error("a write from a version of the replaced file is acknowledged")
	}
}
