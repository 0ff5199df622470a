package sqlstore

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver"
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
	stamp := newStamp("billing", []byte("value"))
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
		{"copied from another key", written(newStamp("other", []byte("value")), "value", "e1", "e1"), true},
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
		stamp := newStamp("k", []byte("v"))
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
		w := written(newStamp("k", []byte("v")), "v", "e", "e")
		w.floor, w.clock = r.floor, r.clock
		if e := w.entry("k"); !e.Unproven || e.Notice == nil {
			t.Errorf("%s: got %+v, want an unproven state with a notice", why, e)
		}
	}
	r := written(newStamp("k", nil), "", "e", "e")
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
