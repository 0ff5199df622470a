package sql

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

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
