package sql

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/electiontest"
)

// inBubble replaces the events of the file system, which stop the clock of a bubble.
var inBubble = sqlstore.WithInterval(10 * time.Millisecond)

// openPushing opens a file as another process would, and pushes its changes.
func openPushing(t testing.TB, file string, opts ...sqlstore.Option) *sqlstore.SQLiteStore {
	t.Helper()
	s, err := sqlstore.NewSQLite(poolOfSQLite(t, file), opts...)
	must(t, err)
	must(t, s.Create(t.Context()))
	return s
}

func pushingHarness(opts ...sqlstore.Option) func(testing.TB) drivertest.Harness {
	return func(t testing.TB) drivertest.Harness {
		file := filepath.Join(t.TempDir(), "elections.db")
		s := openPushing(t, file, opts...)
		h := actions(poolOfSQLite(t, file), s.Store, "?")
		h.Store, h.Peer = s, openPushing(t, file, opts...)
		h.FloorTick = time.Millisecond
		return h
	}
}

func TestPushingSQLiteConformance(t *testing.T) {
	drivertest.RunInBubbles(t, pushingHarness(inBubble))
}

func TestPushingSQLiteElections(t *testing.T) {
	electiontest.RunInBubbles(t, pushingHarness(inBubble))
}

func TestPristineSQLiteConformance(t *testing.T) {
	drivertest.RunInBubbles(t, pushingHarness(inBubble, sqlstore.WithPristine()))
}

func TestPristineSQLiteElections(t *testing.T) {
	electiontest.RunInBubbles(t, pushingHarness(inBubble, sqlstore.WithPristine()))
}

// pushed watches a key in a bubble, and returns what is pushed.
func pushed(t *testing.T, s driver.Watcher, key string) <-chan driver.Entry {
	t.Helper()
	entries := make(chan driver.Entry, 1000)
	stop, err := s.Watch(t.Context(), key, func(e driver.Entry) { entries <- e })
	must(t, err)
	t.Cleanup(stop)
	return entries
}

// awaitPush returns the first entry that fits.
func awaitPush(t *testing.T, from <-chan driver.Entry, what string, fits func(driver.Entry) bool) driver.Entry {
	t.Helper()
	for end := time.After(time.Minute); ; {
		select {
		case e := <-from:
			if fits(e) {
				return e
			}
		case <-end:
			t.Fatalf("%s is not pushed", what)
		}
	}
}

func present(e driver.Entry) bool { return e.Lost == nil }
func lost(e driver.Entry) bool    { return e.Lost != nil }

// TestPushingSQLiteReplacedFile: the watch goes on in the file that is there, which is another era.
func TestPushingSQLiteReplacedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "elections.db")
		s := openPushing(t, file, inBubble)
		_, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
		must(t, err)
		entries := pushed(t, s, "k")
		before := awaitPush(t, entries, "the present state", present)
		absent := pushed(t, s, "absent")
		awaitPush(t, absent, "the present absence", present)
		db := poolOfSQLite(t, file)
		run(t, db, "VACUUM INTO '"+file+".copy'")
		must(t, db.Close())
		must(t, os.Rename(file+".copy", file))
		now := awaitPush(t, entries, "the copy", present)
		if now.Era == before.Era || !now.Unproven || string(now.Value) != "first" {
			t.Errorf("before %+v, now %+v: want another era, and an unproven value", before, now)
		}
		awaitPush(t, absent, "the absence in another era", func(e driver.Entry) bool { return e.Era == now.Era })
	})
}

// TestPushingSQLiteReplacedUnderLeader: the leader does not wait for its next renewal.
func TestPushingSQLiteReplacedUnderLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "elections.db")
		leader := joins(t, t.Context(), openPushing(t, file, inBubble), tenure.Config{ID: "a", Lease: time.Minute})
		term := <-leader.leads
		must(t, os.Rename(file, file+".old"))
		openPushing(t, file, inBubble)
		time.Sleep(5 * time.Second)
		if term.Err() == nil {
			t.Errorf("5 s after its file was replaced, the leader has %v left", term.Remaining())
		}
	})
}

// TestPushingSQLiteRemovedFile: while there is no file, the elections poll.
func TestPushingSQLiteRemovedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "elections.db")
		s := openPushing(t, file, inBubble)
		entries := pushed(t, s, "k")
		before := awaitPush(t, entries, "the present state", present)
		for _, name := range []string{file, file + "-wal", file + "-shm"} {
			must(t, os.Rename(name, name+".away"))
		}
		e := awaitPush(t, entries, "the loss", lost)
		if !strings.Contains(e.Lost.Error(), "renamed or removed") {
			t.Errorf("the reason is %v", e.Lost)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("the watch makes a new file")
		}
		awaitPush(t, pushed(t, s, "other"), "the loss to a watch that begins meanwhile", lost)
		for _, name := range []string{file + "-shm", file + "-wal", file} {
			must(t, os.Rename(name+".away", name))
		}
		if e := awaitPush(t, entries, "that the file is back", present); e.Era != before.Era {
			t.Errorf("the file has era %d, and had %d", e.Era, before.Era)
		}
	})
}

// TestPushingSQLiteLockedFile: another process locks the file in a rollback journal. Each question
// then waits in real time.
func TestPushingSQLiteLockedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "elections.db")
		db := pool(t, file, "_pragma=journal_mode(DELETE)")
		s, err := sqlstore.NewSQLite(db, sqlstore.WithInterval(time.Second))
		must(t, err)
		must(t, s.Create(t.Context()))
		entries := pushed(t, s, "k")
		awaitPush(t, entries, "the present state", present)
		other, err := pool(t, file, "").Conn(t.Context())
		must(t, err)
		_, err = other.ExecContext(t.Context(), "BEGIN EXCLUSIVE")
		must(t, err)
		if e := awaitPush(t, entries, "the loss", lost); !strings.Contains(e.Lost.Error(), "locked") {
			t.Errorf("the reason is %v", e.Lost)
		}
		_, err = other.ExecContext(t.Context(), "ROLLBACK")
		must(t, err)
		awaitPush(t, entries, "that the file is free", present)
		must(t, other.Close())
	})
}

// TestPushingSQLitePools: the watch takes no connection that the writes need, closes none that
// another part of the program uses, gives its own back, and ends with the pool.
func TestPushingSQLitePools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "elections.db")
		for _, most := range []int{1, 2} {
			db := poolOfSQLite(t, file)
			db.SetMaxOpenConns(most)
			s, err := sqlstore.NewSQLite(db, inBubble)
			must(t, err)
			must(t, s.Create(t.Context()))
			e := awaitPush(t, pushed(t, s, "k"), "the loss", lost)
			if !strings.Contains(e.Lost.Error(), "SetMaxOpenConns") || db.Stats().InUse != 0 {
				t.Errorf("with %d connections, of which %d are in use, the reason is %v", most, db.Stats().InUse, e.Lost)
			}
		}
		db := poolOfSQLite(t, file)
		s, err := sqlstore.NewSQLite(db, inBubble)
		must(t, err)
		entries := make(chan driver.Entry, 10)
		stop, err := s.Watch(t.Context(), "k", func(e driver.Entry) { entries <- e })
		must(t, err)
		awaitPush(t, entries, "the present state", present)
		stop()
		synctest.Wait()
		if n := db.Stats().InUse; n != 0 {
			t.Errorf("%d connections are in use after stop", n)
		}
		awaitPush(t, pushed(t, s, "k"), "the present state", present)
		must(t, db.Close())
		time.Sleep(time.Second)
		if n := db.Stats().OpenConnections; n != 0 {
			t.Errorf("%d connections are open in a closed pool", n)
		}
	})
}

// TestPushingSQLiteOpenTransaction: a service has begun a transaction by SQL text on a connection
// of the pool. The watch does not end it, and takes another connection.
func TestPushingSQLiteOpenTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "elections.db")
		db := poolOfSQLite(t, file)
		db.SetMaxIdleConns(1)
		s, err := sqlstore.NewSQLite(db, inBubble)
		must(t, err)
		must(t, s.Create(t.Context()))
		run(t, db, "CREATE TABLE orders (n)", "BEGIN", "INSERT INTO orders VALUES (1)")
		e := awaitPush(t, pushed(t, s, "k"), "the loss", lost)
		if !strings.Contains(e.Lost.Error(), "a transaction is open") {
			t.Errorf("the reason is %v", e.Lost)
		}
		run(t, db, "COMMIT")
		var orders int
		if err := db.QueryRow("SELECT count(*) FROM orders").Scan(&orders); err != nil || orders != 1 {
			t.Errorf("the service has %d orders, %v", orders, err)
		}
	})
}

func TestPushingSQLiteInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := sql.Open("sqlite", ":memory:")
		must(t, err)
		defer func() { _ = db.Close() }()
		s, err := sqlstore.NewSQLite(db, inBubble)
		must(t, err)
		must(t, s.Create(t.Context()))
		if e := awaitPush(t, pushed(t, s, "k"), "the loss", lost); !strings.Contains(e.Lost.Error(), "in memory") {
			t.Errorf("the reason is %v", e.Lost)
		}
		if _, err := s.Read(t.Context(), "k"); err != nil {
			t.Errorf("the watch has closed the database in memory: %v", err)
		}
	})
}

// TestPushingSQLiteManyElections: the keys that changed are found among many.
func TestPushingSQLiteManyElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "elections.db")
		s, other := openPushing(t, file, inBubble), openPushing(t, file, inBubble)
		key := func(i int) string { return fmt.Sprintf("election-%d", i) }
		all := make([]<-chan driver.Entry, 500)
		for i := range all {
			all[i] = pushed(t, s, key(i))
			awaitPush(t, all[i], "the present state", driver.Entry.Absent)
		}
		for i := 0; i < len(all); i += 50 {
			_, err := other.CompareAndSwap(t.Context(), key(i), "", []byte(key(i)))
			must(t, err)
			awaitPush(t, all[i], key(i), func(e driver.Entry) bool { return string(e.Value) == key(i) })
		}
		for i, entries := range all {
			if n := len(entries); n > 0 {
				t.Errorf("%s is pushed %d times more", key(i), n)
			}
		}
	})
}

// TestPushingSQLiteWithoutTable: a look that fails as soon as it reads a row.
func TestPushingSQLiteWithoutTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlstore.NewSQLite(poolOfSQLite(t, filepath.Join(t.TempDir(), "elections.db")), inBubble)
		must(t, err)
		first := pushed(t, s, "k")
		if e := awaitPush(t, first, "the loss", lost); !strings.Contains(e.Lost.Error(), "CREATE TABLE") {
			t.Errorf("the reason is %v", e.Lost)
		}
		second := pushed(t, s, "k")
		awaitPush(t, second, "the loss to a watch that begins meanwhile", lost)
		must(t, s.Create(t.Context()))
		awaitPush(t, first, "the present state", present)
		awaitPush(t, second, "the present state", present)
	})
}

// TestPristineSQLite: in a new file one of two candidates leads at once, and only in the first
// election.
func TestPristineSQLite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "elections.db")
		config := func(id string) tenure.Config {
			return tenure.Config{ID: id, Lease: 15 * time.Second}
		}
		began := time.Now()
		a := joins(t, t.Context(), openPushing(t, file, inBubble, sqlstore.WithPristine()), config("a"))
		b := joins(t, t.Context(), openPushing(t, file, inBubble, sqlstore.WithPristine()), config("b"))
		select {
		case <-a.leads:
		case <-b.leads:
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the first leader came after %v", took)
		}
		s := openPushing(t, file, inBubble, sqlstore.WithPristine())
		if e, err := s.Read(t.Context(), "other"); err != nil || e.Pristine {
			t.Errorf("another key: %+v, %v", e, err)
		}
	})
}

// TestPristineSQLiteIsProven: in each case a candidate may have led, or it cannot be known.
func TestPristineSQLiteIsProven(t *testing.T) {
	const insert = "INSERT INTO tenure (name, value, version, floor, era) VALUES ('k', 'v', 'by-hand', 0, '')"
	older := strings.NewReplacer("seq INTEGER PRIMARY KEY AUTOINCREMENT,", "", "UNIQUE", "PRIMARY KEY")
	for why, c := range map[string]struct {
		create func(string) string
		then   []string
		want   bool
	}{
		"a new table":                 {nil, nil, true},
		"an older version made it":    {older.Replace, nil, false},
		"beside another with numbers": {older.Replace, []string{"CREATE TABLE orders (n INTEGER PRIMARY KEY AUTOINCREMENT)"}, false},
		"a row was removed":           {nil, []string{insert, "DELETE FROM tenure"}, false},
		"a row was replaced":          {nil, []string{insert, "REPLACE INTO tenure (name, value, version, floor, era) VALUES ('k', 'v', 'x', 0, '')", "DELETE FROM tenure WHERE name = 'k'"}, false},
		"the numbers were removed":    {nil, []string{strings.Replace(insert, "'k'", "'other'", 1), "DELETE FROM sqlite_sequence"}, false},
		"an insert was undone":        {nil, []string{"BEGIN; " + insert + "; ROLLBACK"}, true},
	} {
		db := poolOfSQLite(t, filepath.Join(t.TempDir(), "elections.db"))
		s := over(t, db, sqlstore.SQLite(), sqlstore.WithPristine())
		statement := s.CreateStatement()
		if c.create != nil {
			statement = c.create(statement)
		}
		run(t, db, statement)
		before, err := s.Read(t.Context(), "k")
		must(t, err)
		run(t, db, c.then...)
		now, err := s.Read(t.Context(), "k")
		must(t, err)
		if now.Pristine != c.want || !now.Absent() {
			t.Errorf("%s: %+v", why, now)
		}
		unvouched, err := over(t, db, sqlstore.SQLite()).Read(t.Context(), "k")
		must(t, err)
		// The notice names an option, so it comes only where the option helps.
		if named := errors.Is(unvouched.Notice, driver.ErrUnwritten); unvouched.Pristine || named != c.want || now.Notice != nil {
			t.Errorf("%s: without the option %+v, with it %+v", why, unvouched, now)
		}
		if !before.Pristine {
			continue
		}
		_, err = s.CompareAndSwap(t.Context(), "k", before.Version, []byte("first"))
		if c.want != (err == nil) || err != nil && !errors.Is(err, driver.ErrConflict) {
			t.Errorf("%s: a claim of what was pristine: %v", why, err)
		}
	}
}
