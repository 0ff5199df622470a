package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/dashboard"
	"github.com/tenure-go/tenure/driver/memory"
)

// A dashboard that starts after the leader has died says when its record was written, and shows no
// term of it. The next leader is confirmed.
func TestRecordOfADeadLeaderIsNotConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		written := time.Now().Add(-23 * time.Minute).Format(time.RFC3339Nano)
		store.Put("billing", fmt.Appendf(nil, `{"leaderID":"w1","incarnation":"i","term":7,"seq":9,"leaseMillis":15000,"nonce":"n","lastUpdated":%q}`, written))
		s := show(t, dashboard.Source{Name: "store", Store: store, Elections: []string{"billing"}})
		time.Sleep(time.Second)
		const want = "not confirmed: last written 23 min ago, by its writer's clock"
		if a := s.about("billing"); a.Row.Health != "unknown" || !a.Row.Unconfirmed || a.Row.Problem != want || len(a.Terms) != 0 {
			t.Errorf("at first: %+v", a)
		}
		time.Sleep(lease)
		if a := s.about("billing"); a.Row.Health != "vacant" || a.Row.Leader != "" || len(a.Terms) != 0 || !strings.HasPrefix(a.Row.Problem, "the record names w1") {
			t.Errorf("after its lease: %+v", a)
		}
		lead(t, store, "billing", "w2")
		time.Sleep(4 * lease)
		if a := s.about("billing"); a.Row.Health != "ok" || a.Row.Unconfirmed || len(a.Terms) != 1 || a.Terms[0].Leader != "w2" {
			t.Errorf("after the next election: %+v", a)
		}
	})
}

// A leader that was there before the dashboard leads for at least the time that was seen.
func TestAgeOfATermThatWasFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		lead(t, store, "billing", "a")
		time.Sleep(time.Hour)
		s := show(t, dashboard.Source{Name: "store", Store: store, Elections: []string{"billing"}})
		time.Sleep(time.Minute)
		if row := s.about("billing").Row; row.Health != "ok" || !row.AtLeast {
			t.Errorf("the row: %+v", row)
		}
	})
}

// The bar of a leader that crashed shows when it renewed last, and the change its downtime.
func TestCrashShowsItsDowntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		s := show(t, dashboard.Source{Name: "store", Store: store, Elections: []string{"billing"}})
		way := &cut{Store: store}
		lead(t, way, "billing", "a")
		time.Sleep(time.Minute)
		way.cut()
		time.Sleep(3 * lease)
		lead(t, store, "billing", "b")
		time.Sleep(2 * lease)
		term := s.about("billing").Terms[0]
		if term.Renewed == nil || term.To.Sub(*term.Renewed) != lease || term.Down < 25_000 || term.Down > 50_000 || !term.Tardy {
			t.Errorf("the term: %+v", term)
		}
	})
}

// Moves that were asked for do not make an election flap, and those of some milliseconds are not
// marked.
func TestMovesThatWereAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		s := show(t, dashboard.Source{Name: "store", Store: store, Elections: []string{"billing"}})
		for _, id := range []string{"a", "b"} {
			lead(t, store, "billing", id)
			time.Sleep(2 * lease)
		}
		asker, err := tenure.New(store, "billing", tenure.Config{ID: "ops", Clock: clock.Standard{}})
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if err := asker.HandOver(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * lease)
		}
		a := s.about("billing")
		if a.Row.Health != "ok" || a.Row.Changes != 0 || len(a.Terms) != 11 {
			t.Errorf("%d terms: %+v", len(a.Terms), a.Row)
		}
		for _, term := range a.Terms[:10] {
			if !term.Asked || term.Tardy {
				t.Errorf("a term: %+v", term)
			}
		}
	})
}

// At a first start, it is normal that nobody leads for one lease. Then it is not.
func TestFirstStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		s := show(t, dashboard.Source{Name: "store", Store: store, Elections: []string{"billing"}, Interval: time.Second})
		time.Sleep(time.Minute) // there is no record yet
		store.Put("billing", []byte(`{"leaderID":"","term":0,"seq":1,"leaseMillis":15000,"nonce":"v"}`))
		time.Sleep(5 * time.Second)
		if row := s.about("billing").Row; row.Health != "starting" || !strings.HasPrefix(row.Problem, "the record is vacant") {
			t.Errorf("at first: %+v", row)
		}
		time.Sleep(lease)
		if row := s.about("billing").Row; row.Health != "vacant" {
			t.Errorf("after a lease: %+v", row)
		}
		store.Put("billing", []byte("junk"))
		time.Sleep(5 * time.Second)
		if o := s.overview("&health=alarm"); o.Counts["alarm"] != 1 || o.Counts["vacant"] != 1 || o.Matching != 1 || !o.Elections[0].Alarm {
			t.Errorf("with an alarm: %+v", o)
		}
	})
}
