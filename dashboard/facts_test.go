package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/dashboard"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// If each read shows a renewal, a release between two reads is not seen. It must not count as
// silence either.
func TestReleasesBetweenTwoReadsAreNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		s := show(t, dashboard.Source{Name: "store", Store: store, Elections: []string{"billing"}, Interval: 7 * time.Second})
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

// unreliable is a store from which the dashboard can be cut off. Reads then fail, and pushes are
// lost silently.
type unreliable struct {
	*memory.Store
	off    atomic.Bool
	failed atomic.Int64
}

func (d *unreliable) Read(ctx context.Context, key string) (driver.Entry, error) {
	if d.off.Load() {
		return driver.Entry{}, fmt.Errorf("cut off: RequestID: %d", d.failed.Add(1))
	}
	return d.Store.Read(ctx, key)
}

func (d *unreliable) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	return d.Store.Watch(ctx, key, func(e driver.Entry) {
		if !d.off.Load() {
			see(e)
		}
	})
}

// The leader releases its lease while the dashboard is cut off. The history has a gap there, and
// does not show how the term ended.
func TestUnseenChangeOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &unreliable{Store: memory.New()}
		s := show(t, dashboard.Source{Name: "store", Store: store, Elections: []string{"billing"}})
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
		store := &unreliable{Store: memory.New()}
		s := show(t, dashboard.Source{Name: "store", Store: store, Elections: []string{"billing"}})
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

// unwatched is a store that can push, but not to the dashboard.
type unwatched struct{ *memory.Store }

func (unwatched) Watch(context.Context, string, func(driver.Entry)) (func(), error) {
	return nil, errors.New("the right to subscribe is missing")
}

func TestStoreWhoseWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		s := show(t, dashboard.Source{Name: "store", Store: unwatched{store}, Elections: []string{"billing"}, Price: 1})
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
		store := &unreliable{Store: memory.New()}
		s := show(t, dashboard.Source{Name: "store", Store: store, Elections: []string{"billing"}})
		lead(t, store.Store, "billing", "a")
		time.Sleep(time.Minute)
		store.off.Store(true)
		time.Sleep(30 * time.Minute)
		count := map[string]int{}
		for _, e := range s.about("billing").Events {
			count[e.What]++
		}
		if count["store"] != 1 || count["trouble"] != 0 || count["elected"] != 1 || store.failed.Load() < 100 {
			t.Errorf("after %d failures the events are %v", store.failed.Load(), count)
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
				store := &unreliable{Store: base}
				var shown driver.Store = store
				if c.polled {
					shown = struct{ driver.Store }{store}
				}
				s := show(t, dashboard.Source{Name: "store", Store: shown, Elections: []string{"billing"}, Interval: c.interval})
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
		for _, a := range []about{s.about("billing"), again.about("billing")} {
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

// A number that is too large must not cause a panic.
func TestLargestOffset(t *testing.T) {
	d, err := dashboard.New(dashboard.Config{Sources: []dashboard.Source{{Name: "store", Store: memory.New(), Elections: []string{"x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/overview?offset=9223372036854775807", nil))
	if w.Code != http.StatusOK {
		t.Errorf("got %d", w.Code)
	}
}

func updated(t *testing.T, e driver.Entry) time.Time {
	t.Helper()
	var r struct{ LastUpdated time.Time }
	if err := json.Unmarshal(e.Value, &r); err != nil {
		t.Fatal(err)
	}
	return r.LastUpdated
}
