package sqlstore

import (
	"database/sql"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/seal"
)

// written returns the row of a write in an era, as a server of another era shows it.
func written(stamp, value, wroteIn, now string) row {
	return row{
		value: []byte(value), version: sql.NullString{String: stamp, Valid: true},
		floor: sql.NullInt64{Int64: 7, Valid: true}, wroteIn: sql.NullString{String: wroteIn, Valid: true}, era: now,
	}
}

// TestUnproven: a value is trusted only if this package wrote it under this key and in the present
// era.
func TestUnproven(t *testing.T) {
	stamp := seal.New("billing", []byte("value"))
	for _, c := range []struct {
		why  string
		row  row
		want bool
	}{
		{"written by this package", written(stamp, "value", "e1", "e1"), false},
		{"written without eras", written(stamp, "value", "", ""), false},
		{"written before a promotion", written(stamp, "value", "e1", "e2"), true},
		{"edited by hand", written(stamp, "valu3", "e1", "e1"), true},
		{"emptied by hand", written(stamp, "", "e1", "e1"), true},
		{"copied from another key", written(seal.New("other", []byte("value")), "value", "e1", "e1"), true},
		{"a version by hand", written("42", "value", "e1", "e1"), true},
		{"an empty version", written("", "value", "e1", "e1"), true},
		{"a version in capitals", written(strings.ToUpper(stamp), "value", "e1", "e1"), true},
		{"a version cut short", written(stamp[:32], "value", "e1", "e1"), true},
		{"a version that is too long", written(stamp+"00", "value", "e1", "e1"), true},
	} {
		if e := c.row.entry("billing"); e.Unproven != c.want {
			t.Errorf("%s: got %v", c.why, e.Unproven)
		}
	}
}

func TestStampsNeverRecur(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		stamp := seal.New("k", []byte("v"))
		if seen[stamp] || len(stamp) > 64 { // MySQL's column
			t.Fatalf("stamp %q", stamp)
		}
		seen[stamp] = true
	}
}

func TestVersionNamesTheEra(t *testing.T) {
	for _, want := range []version{{"ab", ""}, {"ab", "7000/00000001/16385"}, {"ab", "1/host with space/3306"}} {
		if got := parseVersion(want.version()); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if a, b := era("history 1"), era("history 2"); a == b || a == 0 || era("") != 0 {
		t.Errorf("eras %d and %d, and %d of none", a, b, era(""))
	}
}

func TestEntryOfARow(t *testing.T) {
	const far = 10_400_000_000_000_000 // the year 2300
	for _, c := range []struct {
		why          string
		floor, clock int64
		want         uint64
	}{
		{"the clock is ahead", 5, 9, 9},
		{"the clock went back", 9, 5, 9},
		{"a clock before 1970, and no row", 0, -5, 0},
		{"a clock of the year 2300", 5, far, 5},
		{"a floor of the year 2300", far, 5, 5},
		{"both", far, far + 1, far + 1},
		{"a clock of the year 2300, and no row", 0, far, far},
	} {
		r := row{floor: sql.NullInt64{Int64: c.floor, Valid: c.floor > 0}, clock: c.clock, era: "e"}
		if e := r.entry("k"); e.Floor != c.want || e.Ceiling != latest || !e.Absent() || e.Version != driver.Version("") || e.Unproven {
			t.Errorf("%s: got %+v, want floor %d", c.why, e, c.want)
		}
	}
	for why, r := range map[string]row{
		"a clock of the year 2300": {floor: sql.NullInt64{Int64: 5, Valid: true}, clock: far},
		"a floor of the year 2300": {floor: sql.NullInt64{Int64: far, Valid: true}, clock: 5},
	} {
		w := written(seal.New("k", []byte("v")), "v", "e", "e")
		w.floor, w.clock = r.floor, r.clock
		if e := w.entry("k"); !e.Unproven || e.Notice == nil {
			t.Errorf("%s: got %+v, want an unproven state with a notice", why, e)
		}
	}
	r := written(seal.New("k", nil), "", "e", "e")
	if e := r.entry("k"); !e.Absent() || e.Version == "" {
		t.Errorf("an empty value: got %+v, want an absence with a version", e)
	}
}

func TestCheckKey(t *testing.T) {
	s := newStore(t, &sql.DB{}, SQLite())
	for key, want := range map[string]string{
		"billing":                "",
		"a/b:c.d é'\"%":          "",
		strings.Repeat("k", 255): "",
		strings.Repeat("é", 127): "",
		"":                       "empty",
		strings.Repeat("k", 256): "256 bytes, of at most 255",
		strings.Repeat("é", 128): "256 bytes, of at most 255",
		"a\xff":                  "not UTF-8",
		"a\nb":                   "control characters",
		"a\x00b":                 "control characters",
		"a\x7fb":                 "control characters",
	} {
		err := s.CheckKey(key)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.20q, %d bytes: got %v, want %q", key, len(key), err, want)
		}
	}
}

// The first state of each era is unproven until it changes, also when an era comes back: the former
// primary may lack what was written in between.
func TestFirstStateOfAnEraIsUnproven(t *testing.T) {
	db := sql.OpenDB(&server{})
	t.Cleanup(func() { _ = db.Close() })
	s := newStore(t, db, MySQL())
	for i, c := range []struct {
		era     string
		version driver.Version
		wrote   bool // this Store, not another member
		want    bool
		why     string
	}{
		{"P", "", false, false, "nothing is there"},
		{"P", "1", false, false, "the row is new"},
		{"Q", "1", false, true, "another server took over"},
		{"Q", "1", false, true, "nobody has written since"},
		{"Q", "2", false, false, "a member has renewed"},
		{"P", "1", false, true, "the former primary took over again, and lacks that"},
		{"P", "3", true, false, "it was written here"},
		{"P", "3", false, false, "it is what was written"},
		{"Q", "2", false, true, "the same once more"},
	} {
		if c.wrote {
			s.arrive("k", s.lastArrival("k"), arrival{c.era, ""})
		}
		if got := s.arrives("k", s.lastArrival("k"), c.era, c.version); got != c.want {
			t.Errorf("step %d, version %s in era %s: got %v; %s", i, c.version, c.era, got, c.why)
		}
	}
}

// An answer that comes late does not make the Store forget an era that another call has seen since.
func TestLateAnswerHidesNoEra(t *testing.T) {
	db := sql.OpenDB(&server{})
	t.Cleanup(func() { _ = db.Close() })
	s := newStore(t, db, MySQL())
	before := s.lastArrival("k") // of a read and a write in era P whose answers are late
	s.arrives("k", before, "Q", "6")
	s.arrives("k", before, "P", "5")
	s.arrive("k", before, arrival{"P", ""})
	if !s.arrives("k", s.lastArrival("k"), "P", "6") {
		t.Error("the former primary took over again, and its first state is believed")
	}
}

func TestParseTable(t *testing.T) {
	for _, c := range []struct {
		text string
		want table
		bad  string // part of the error
	}{
		{text: "tenure", want: table{name: "tenure"}},
		{text: "app.tenure", want: table{"app", "tenure"}},
		{text: `o"dd Näme`, want: table{name: `o"dd Näme`}},
		{text: "", bad: "name is empty"},
		{text: "app.", bad: "name is empty"},
		{text: ".tenure", bad: "schema before the dot is empty"},
		{text: "a.b.c", bad: "more than one dot"},
		{text: "a\nb", bad: "not plain text"},
		{text: "a\x00", bad: "not plain text"},
		{text: "a\x7f", bad: "not plain text"},
		{text: "a\xff", bad: "not plain text"},
	} {
		got, err := parseTable(c.text)
		switch {
		case c.bad == "" && (err != nil || got != c.want || got.String() != c.text):
			t.Errorf("%q: got %+v (%s), %v", c.text, got, got, err)
		case c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)):
			t.Errorf("%q: got %v, want an error with %q", c.text, err, c.bad)
		}
	}
}

// TestQuotedName: a name can end neither its quotes nor a literal, so it cannot change a statement.
func TestQuotedName(t *testing.T) {
	for _, c := range []struct {
		dialect Dialect
		name    string
		want    string
	}{
		{Postgres(), "tenure", `"tenure"`},
		{Postgres(), `app.Ten"ure`, `"app"."Ten""ure"`},
		{SQLite(), `x"; DROP TABLE y; --`, `"x""; DROP TABLE y; --"`},
		{MySQL(), "app.ten`ure", "`app`.`ten``ure`"},
		{MySQL(), "it's", "`it's`"},
	} {
		s := newStore(t, &sql.DB{}, c.dialect, WithTable(c.name))
		for _, statement := range []string{s.text.create, s.text.read, s.text.insert, s.text.update, s.text.rights} {
			if !strings.Contains(statement, c.want) || strings.Contains(strings.ReplaceAll(statement, "{file}", ""), "{") {
				t.Errorf("%s: want the table as %s in:\n%s", c.name, c.want, statement)
			}
		}
	}
	s := newStore(t, &sql.DB{}, Postgres(), WithTable(`it's"`))
	if want := `to_regclass('"it''s"""')`; !strings.Contains(s.text.era, want) {
		t.Errorf("the era has no %s: %s", want, s.text.era)
	}
}

func newStore(t testing.TB, db *sql.DB, dialect Dialect, opts ...Option) *Store {
	t.Helper()
	s, err := New(db, dialect, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewRefusesInvalidSettings(t *testing.T) {
	for _, c := range []struct {
		db      *sql.DB
		dialect Dialect
		option  Option
		want    string
	}{
		{nil, SQLite(), WithTable("tenure"), "database is nil"},
		{&sql.DB{}, Dialect{}, WithTable("tenure"), "use Postgres, MySQL or SQLite"},
		{&sql.DB{}, SQLite(), WithTable("a.b.c"), "more than one dot"},
		{&sql.DB{}, MySQL(), WithNotifications(), "has no notifications"},
		{&sql.DB{}, SQLite(), WithNotifications(), "has no notifications"},
	} {
		if _, err := New(c.db, c.dialect, c.option); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}

func TestParseNotification(t *testing.T) {
	value := []byte(`{"a": "record"}`)
	stamp := seal.New("billing", value)
	good := []string{"billing", stamp, "42", "7/1/9", base64.StdEncoding.EncodeToString(value)}
	key, e, err := ParseNotification(strings.Join(good, "\n"))
	if err != nil || key != "billing" || string(e.Value) != string(value) || e.Floor != 42 || !e.Unverified {
		t.Errorf("got %q, %+v, %v", key, e, err)
	}
	r := written(stamp, string(value), "7/1/9", "7/1/9")
	if read := r.entry("billing"); read.Version != e.Version || read.Era != e.Era {
		t.Errorf("pushed is %+v, read is %+v", e, read)
	}
	for field, bad := range map[int][]string{
		0: {"another", ""}, 1: {"", "x", seal.New("billing", nil)}, 2: {"", "-1", "x"}, 4: {"", "?", "bm90"},
	} {
		for _, text := range bad {
			fields := append([]string{}, good...)
			fields[field] = text
			if key, e, err := ParseNotification(strings.Join(fields, "\n")); err == nil || key != fields[0] {
				t.Errorf("field %d is %q: got %q, %+v", field, text, key, e)
			}
		}
	}
	for n := range good {
		if _, _, err := ParseNotification(strings.Join(good[:n], "\n")); err == nil {
			t.Errorf("%d fields are enough", n)
		}
	}
}

// TestPageShowsTheTables: docs/sql.md has the statements that Create sends.
func TestPageShowsTheTables(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "sql.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []Dialect{Postgres(), MySQL(), SQLite()} {
		want := "\n\n" + newStore(t, &sql.DB{}, d).CreateStatement() + ";"
		if want = strings.ReplaceAll(want, "\n", "\n    "); !strings.Contains(string(page), strings.Replace(want, "\n    \n", "\n\n", 1)+"\n") {
			t.Errorf("docs/sql.md lacks, for %s:%s", d.name, want)
		}
	}
}
