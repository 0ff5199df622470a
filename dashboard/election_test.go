package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// A dashboard that starts after the leader has died says when its record was written, and shows no
// term of it. The next leader is confirmed.
func TestRecordOfADeadLeaderIsNotConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		written := time.Now().Add(-23 * time.Minute).Format(time.RFC3339Nano)
		store.Put("billing", fmt.Appendf(nil, `{"leaderID":"w1","incarnation":"i","term":7,"seq":9,"leaseMillis":15000,"nonce":"n","lastUpdated":%q}`, written))
		s := show(t, Source{Name: "store", Store: store, Elections: []string{"billing"}})
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

// The bar of a leader that crashed shows when it renewed last, and the change its downtime.
func TestCrashShowsItsDowntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		s := show(t, Source{Name: "store", Store: store, Elections: []string{"billing"}})
		way := &fake{Store: store, fail: cutOff}
		lead(t, way, "billing", "a")
		time.Sleep(time.Minute)
		way.off.Store(true)
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
		s := show(t, Source{Name: "store", Store: store, Elections: []string{"billing"}})
		for _, id := range []string{"a", "b"} {
			lead(t, store, "billing", id)
			time.Sleep(2 * lease)
		}
		asker, err := tenure.New(store, "billing", tenure.Config{ID: "ops"})
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
		s := show(t, Source{Name: "store", Store: store, Elections: []string{"billing"}, Interval: time.Second})
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

// If each read shows a renewal, a release between two reads is not seen. It must not count as
// silence either.
func TestReleasesBetweenTwoReadsAreNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		s := show(t, Source{Name: "store", Store: store, Elections: []string{"billing"}, Interval: 7 * time.Second})
		stop := lead(t, store, "billing", "first")
		for i := range 40 {
			next := lead(t, store, "billing", fmt.Sprint("m", i))
			time.Sleep(2*lease + time.Duration(i)*331*time.Millisecond)
			stop()
			stop = next
			time.Sleep(2 * lease)
		}
		how := map[string]int{}
		for _, term := range s.about("billing").Terms {
			how[term.Ended]++
		}
		if how["silence"] > 0 || how["released"] == 0 || how["unknown"] == 0 {
			t.Errorf("40 leaders released their leases; shown are %v", how)
		}
	})
}

// The leader releases its lease while the dashboard is cut off. The history has a gap there, and
// does not show how the term ended.
func TestUnseenChangeOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{Store: memory.New(), fail: cutOff}
		s := show(t, Source{Name: "store", Store: store, Elections: []string{"billing"}})
		stop := lead(t, store.Store, "billing", "a")
		time.Sleep(time.Minute)
		lead(t, store.Store, "billing", "b")
		time.Sleep(time.Minute)
		store.off.Store(true)
		time.Sleep(time.Minute)
		stop()
		time.Sleep(time.Minute)
		if a := s.about("billing"); len(a.Unseen) != 1 || !a.Unseen[0].From.Equal(*a.Terms[0].To) || !a.Unseen[0].To.Equal(time.Now()) {
			t.Errorf("out of sight: %+v", a)
		}
		store.off.Store(false)
		time.Sleep(time.Minute)
		a := s.about("billing")
		if first := a.Terms[0]; len(a.Terms) != 2 || first.Ended != "unknown" || first.Took != nil || first.Least != nil {
			t.Errorf("the terms are %+v", a.Terms)
		}
		if len(a.Unseen) != 1 || a.Unseen[0].To.Before(a.Terms[1].From) || a.Unseen[0].To.After(a.Terms[1].From.Add(time.Second)) {
			t.Errorf("not seen: %+v", a.Unseen)
		}
	})
}

// The dashboard misses renewals for less than a lease. That must not look as if the leader came
// close to its deadline.
func TestRenewalAfterMissedOnesIsNoSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{Store: memory.New(), fail: cutOff}
		s := show(t, Source{Name: "store", Store: store, Elections: []string{"billing"}})
		lead(t, store.Store, "billing", "a")
		for i := range 40 {
			store.off.Store(true)
			time.Sleep(time.Duration(i) * 401 * time.Millisecond)
			store.off.Store(false)
			time.Sleep(2*lease + 123*time.Millisecond)
		}
		a := s.about("billing")
		if len(a.Renewals) < 100 {
			t.Errorf("%d renewals were seen", len(a.Renewals))
		}
		for _, r := range a.Renewals {
			if r.Left < 0.5 {
				t.Errorf("the leader renews each 5 s, and %v of its lease is shown to be left", r.Left)
			}
		}
	})
}

func TestStoreWhoseWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		way := failing(store, func(_ context.Context, op, _ string) error {
			if op == "watch" {
				return errors.New("the right to subscribe is missing")
			}
			return nil
		})
		s := show(t, Source{Name: "store", Store: way, Elections: []string{"billing"}, Price: 1})
		lead(t, store, "billing", "a")
		time.Sleep(30 * time.Minute)
		a, of := s.about("billing"), s.overview("").Sources[0]
		if a.Row.Health != "ok" || len(a.Renewals) != 0 {
			t.Errorf("a leader that renews each 5 s: %+v, renewals %v", a.Row, a.Renewals)
		}
		if of.Pushed || a.Pushed || of.Interval != 15000 || of.PerMonth < 100 {
			t.Errorf("the store is read: %+v", of)
		}
		if n := len(a.Events); n > 5 {
			t.Errorf("%d events of one trouble that lasts", n)
		}
	})
}

// In an outage of 30 minutes each error has another number. The earlier events are still there.
func TestTroubleDisplacesNoEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed atomic.Int64
		store := &fake{Store: memory.New(), fail: func(context.Context, string, string) error {
			return fmt.Errorf("cut off: RequestID: %d", failed.Add(1))
		}}
		s := show(t, Source{Name: "store", Store: store, Elections: []string{"billing"}})
		lead(t, store.Store, "billing", "a")
		time.Sleep(time.Minute)
		store.off.Store(true)
		time.Sleep(30 * time.Minute)
		count := map[string]int{}
		for _, e := range s.about("billing").Events {
			count[e.What]++
		}
		if count["store"] != 1 || count["trouble"] != 0 || count["elected"] != 1 || failed.Load() < 100 {
			t.Errorf("after %d failures the events are %v", failed.Load(), count)
		}
	})
}

// The remaining time is never shorter than the minimum that is shown.
func TestMinimumTimeLeft(t *testing.T) {
	for name, c := range map[string]struct {
		polled   bool
		interval time.Duration
	}{"pushed": {}, "polled": {true, 4100 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := memory.New()
				store := &fake{Store: base, fail: cutOff, polled: c.polled}
				s := show(t, Source{Name: "store", Store: store, Elections: []string{"billing"}, Interval: c.interval})
				lead(t, base, "billing", "a")
				time.Sleep(time.Minute)
				for i := range 1500 {
					store.off.Store(i%300 < 55+i/300*5)
					time.Sleep(100*time.Millisecond + 7*time.Microsecond)
					e, err := base.Read(t.Context(), "billing")
					if err != nil {
						t.Fatal(err)
					}
					left := lease - time.Since(updated(t, e))
					if a := s.about("billing"); a.Left != nil && time.Duration(a.Left.Least)*time.Millisecond > left+time.Millisecond {
						t.Errorf("%v is left, and at least %d ms is shown", left, a.Left.Least)
					}
				}
			})
		})
	}
}

// The store is deleted and recreated twice. Each time "a" leads the first term for an hour.
func TestTermsOfARecreatedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, file := memory.New(), filepath.Join(t.TempDir(), "history")
		s, stop := remembering(t, store, file)
		for range 3 {
			store.Recreate()
			time.Sleep(time.Hour)
			leave := lead(t, store, "billing", "a")
			time.Sleep(time.Hour)
			leave()
		}
		stop()
		again, _ := remembering(t, store, file)
		time.Sleep(time.Second)
		for _, a := range []detail{s.about("billing"), again.about("billing")} {
			if len(a.Terms) != 3 {
				t.Fatalf("the terms are %+v", a.Terms)
			}
			for _, term := range a.Terms {
				if led := term.To.Sub(term.From); led < 59*time.Minute || led > time.Hour {
					t.Errorf("it led for %v: %+v", led, term)
				}
				if term.Took != nil && *term.Took < 0 {
					t.Errorf("it took %v ms", *term.Took)
				}
			}
		}
	})
}

// The history comes from a clock that was two hours ahead.
func TestClockThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, file := memory.New(), filepath.Join(t.TempDir(), "history")
		text := fmt.Sprintln(`{"tenure_dashboard_history":1}`)
		for i := range 6 {
			from := time.Now().Add(2*time.Hour + time.Duration(i)*time.Minute).Format(time.RFC3339)
			text += fmt.Sprintf(`{"source":"store","name":"billing","term":{"leader":"old","term":%d,"from":%q}}`, i+1, from) + "\n"
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, _ := remembering(t, store, file)
		lead(t, store, "billing", "a")
		time.Sleep(time.Minute)
		a := s.about("billing")
		if len(a.Terms) != 7 || a.Row.Changes != 1 || a.Row.Health != "ok" {
			t.Errorf("got %+v of the terms %+v", a.Row, a.Terms)
		}
		for _, term := range a.Terms {
			if term.To != nil && term.To.Before(term.From) {
				t.Errorf("a term ends before it begins: %+v", term)
			}
		}
	})
}

func updated(t *testing.T, e driver.Entry) time.Time {
	t.Helper()
	var r struct{ LastUpdated time.Time }
	if err := json.Unmarshal(e.Value, &r); err != nil {
		t.Fatal(err)
	}
	return r.LastUpdated
}
