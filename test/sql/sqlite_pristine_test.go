package sql

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

// TestPristineSQLite: in a new file one of two candidates leads at once, and only in the first
// election.
func TestPristineSQLite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "elections.db")
		config := func(id string) tenure.Config {
			return tenure.Config{ID: id, Lease: 15 * time.Second, Clock: clock.Standard{}}
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
		if !before.Pristine {
			continue
		}
		_, err = s.CompareAndSwap(t.Context(), "k", before.Version, []byte("first"))
		if c.want != (err == nil) || err != nil && !errors.Is(err, driver.ErrConflict) {
			t.Errorf("%s: a claim of what was pristine: %v", why, err)
		}
	}
}
