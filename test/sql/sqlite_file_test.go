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
		pool := poolOfSQLite(t, file)
		member := func(ctx context.Context, pool *sql.DB, id string) *member {
			return joins(t, ctx, over(t, pool, sqlstore.SQLite()), tenure.Config{ID: id, Lease: 15 * time.Second})
		}
		db, _ := openSQLite(t, file)
		short, stop := context.WithCancel(ctx)
		first := member(short, pool, "a")
		<-first.leads
		stop()
		<-first.gone
		must(t, pool.Close())
		run(t, db, "VACUUM INTO '"+file+".copy'")
		must(t, db.Close())
		b := member(ctx, poolOfSQLite(t, file), "b")
		<-b.leads
		must(t, os.Remove(file+"-wal"))
		must(t, os.Remove(file+"-shm"))
		must(t, os.Rename(file+".copy", file))
		oneLeads(t, b, member(ctx, poolOfSQLite(t, file), "c"))
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
		a := joins(t, ctx, s, tenure.Config{ID: "a", Lease: 15 * time.Second})
		<-a.leads
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
		oneLeads(t, a, joins(t, ctx, copied, tenure.Config{ID: "b", Lease: 15 * time.Second}))
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
func oneLeads(t *testing.T, members ...*member) {
	t.Helper()
	time.Sleep(time.Minute)
	leaders := 0
	for _, m := range members {
		if term, leads := m.Term(); leads && term.Err() == nil {
			leaders++
		}
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

// pool opens a file with parameters of the driver.
func pool(t testing.TB, file, parameters string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&"+parameters)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// calls makes all calls of a member, and returns their errors.
func calls(ctx context.Context, s *sqlstore.Store) map[string]error {
	_, read := s.Read(ctx, "k")
	_, insert := s.CompareAndSwap(ctx, "k", "", []byte("v"))
	_, update := s.CompareAndSwap(ctx, "k", "stamp", []byte("v"))
	return map[string]error{"read": read, "insert": insert, "update": update, "rights": s.CheckRights(ctx, "k")}
}

// TestSQLiteBadFile: each call that cannot work gives the remedy.
func TestSQLiteBadFile(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	openSQLite(t, good)
	text := filepath.Join(dir, "text")
	must(t, os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o600))
	run(t, pool(t, good, ""), "CREATE TABLE other (name TEXT PRIMARY KEY, x TEXT)",
		"CREATE TABLE loose (name TEXT, value BLOB, version TEXT, floor INTEGER, era TEXT)")
	for _, c := range []struct {
		name, file, parameters, table string
		want                          string
		works                         string // calls that need not fail
	}{
		{name: "no table", file: good, table: "missing", want: `CREATE TABLE IF NOT EXISTS "missing"`},
		{name: "other columns", file: good, table: "other", want: "other columns"},
		{name: "name is not unique", file: good, table: "loose", want: "other columns", works: "read update rights"},
		{name: "read-only", file: good, parameters: "mode=ro", table: "tenure", want: "mode=ro", works: "read"},
		{name: "no directory", file: filepath.Join(dir, "none", "file"), table: "tenure", want: "check the path"},
		{name: "no database", file: text, table: "tenure", want: "check the path"},
	} {
		s := over(t, pool(t, c.file, c.parameters), sqlstore.SQLite(), sqlstore.WithTable(c.table))
		for call, err := range calls(t.Context(), s) {
			if strings.Contains(c.works, call) && (err == nil || errors.Is(err, driver.ErrConflict)) {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "table "+c.table) {
				t.Errorf("%s, %s: got %v, want %q", c.name, call, err, c.want)
			}
		}
	}
}

// TestSQLiteEditedRow: a value that this package did not write is unproven.
func TestSQLiteEditedRow(t *testing.T) {
	db, s := openSQLite(t, filepath.Join(t.TempDir(), "elections.db"))
	ctx := t.Context()
	_, err := s.CompareAndSwap(ctx, "k", "", []byte("value"))
	must(t, err)
	for _, c := range []struct {
		why, change      string
		absent, unproven bool
	}{
		{"as it was written", "UPDATE tenure SET floor = floor", false, false},
		{"the value was edited", "UPDATE tenure SET value = CAST('valu3' AS BLOB)", false, true},
		{"the value was emptied", "UPDATE tenure SET value = x''", true, true},
		{"the row was written by hand", "UPDATE tenure SET value = x'ff00', version = '1'", false, true},
	} {
		run(t, db, c.change)
		e, err := s.Read(ctx, "k")
		if err != nil || e.Unproven != c.unproven || e.Absent() != c.absent || e.Version == "" {
			t.Errorf("%s: got %+v, %v", c.why, e, err)
		}
	}
	for _, version := range []string{"", "by hand"} {
		if _, err := db.ExecContext(ctx, "UPDATE tenure SET version = ?", version); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(ctx, "k"); err == nil || !strings.Contains(err.Error(), "without spaces") {
			t.Errorf("the version is %q: %v", version, err)
		}
	}
	run(t, db, "UPDATE tenure SET version = '2'")
	e, err := s.Read(ctx, "k")
	must(t, err)
	if _, err := s.CompareAndSwap(ctx, "k", e.Version, []byte("next")); err != nil {
		t.Error(err)
	}
	if e, err := s.Read(ctx, "k"); err != nil || e.Unproven || string(e.Value) != "next" {
		t.Errorf("after a write: got %+v, %v", e, err)
	}
}

func TestSQLiteInspect(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, file, parameters string
		want                   map[string]driver.Severity
	}{
		{"sound", filepath.Join(dir, "sound"), "_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)", nil},
		{"the defaults", filepath.Join(dir, "defaults"), "", nil},
		{"no sync", filepath.Join(dir, "off"), "_pragma=synchronous(OFF)", map[string]driver.Severity{"synchronous": driver.Warning}},
		{"no journal", filepath.Join(dir, "journal"), "_pragma=journal_mode(OFF)", map[string]driver.Severity{"journal_mode": driver.Unsafe}},
		{"a journal in memory", filepath.Join(dir, "memory"), "_pragma=journal_mode(MEMORY)", map[string]driver.Severity{"journal_mode": driver.Unsafe}},
		{"in memory", ":memory:", "", map[string]driver.Severity{"file": driver.Unsafe}},
	} {
		db := pool(t, c.file, c.parameters)
		db.SetMaxOpenConns(1) // in memory, each connection is another database
		found, err := open(t, db, sqlstore.SQLite()).Inspect(t.Context(), time.Minute)
		must(t, err)
		compareFindings(t, c.name, found, c.want)
	}
	s := over(t, pool(t, filepath.Join(dir, "empty"), ""), sqlstore.SQLite())
	if _, err := s.Inspect(t.Context(), time.Minute); err == nil || !strings.Contains(err.Error(), "CREATE TABLE") {
		t.Errorf("no table: got %v", err)
	}
}

// compareFindings checks the settings found and their severities, and that each has a remedy.
func compareFindings(t *testing.T, name string, found []driver.Finding, want map[string]driver.Severity) {
	t.Helper()
	got := map[string]driver.Severity{}
	for _, f := range found {
		got[f.Setting] = f.Severity
		if f.Problem == "" || f.Remedy == "" {
			t.Errorf("%s: %v lacks problem or remedy", name, f)
		}
	}
	for setting, severity := range want {
		if got[setting] != severity {
			t.Errorf("%s: %s is %v, want %v; all: %v", name, setting, got[setting], severity, found)
		}
	}
	if len(got) > len(want) {
		t.Errorf("%s: found %v, want %v", name, found, want)
	}
}
