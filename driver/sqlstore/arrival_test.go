package sqlstore

import (
	"database/sql"
	"testing"

	"github.com/tenure-go/tenure/driver"
)

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
