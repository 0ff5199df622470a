package sqlstore

import (
	"database/sql"
	"strings"
	"testing"
)

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
		table   string
		want    string
	}{
		{nil, SQLite(), "tenure", "database is nil"},
		{&sql.DB{}, Dialect{}, "tenure", "use Postgres, MySQL or SQLite"},
		{&sql.DB{}, SQLite(), "a.b.c", "more than one dot"},
	} {
		if _, err := New(c.db, c.dialect, WithTable(c.table)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}

// The hint names an option, so it is empty where the option is set or refused.
func TestPristineHint(t *testing.T) {
	for what, c := range map[string]struct {
		dialect Dialect
		opts    []Option
		hints   bool
	}{
		"SQLite":               {SQLite(), nil, true},
		"SQLite with Pristine": {SQLite(), []Option{WithPristine()}, false},
		"PostgreSQL":           {Postgres(), nil, false},
	} {
		s, err := New(new(sql.DB), c.dialect, c.opts...)
		if err != nil {
			t.Fatal(err)
		}
		if hint := s.PristineHint(); (hint != "") != c.hints {
			t.Errorf("the hint of %s is %q", what, hint)
		}
	}
}
