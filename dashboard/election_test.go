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
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

func TestElections(t *testing.T) {
	scenes{
		// A dashboard that starts after the leader has died says when its record was written, and
		// shows no term of it. The next leader is confirmed.
		"the record of a dead leader is not confirmed": func(s *scene) {
			store := memory.NewPolled()
			written := time.Now().Add(-23 * time.Minute).Format(time.RFC3339Nano)
			store.Put("billing", fmt.Appendf(nil, `{"leaderID":"w1","incarnation":"i","term":7,"seq":9,"leaseMillis":15000,"nonce":"n","lastUpdated":%q}`, written))
			s.show(store)
			time.Sleep(time.Second)
			const want = "not confirmed: last written 23 min ago, by its writer's clock"
			if a := s.about("billing"); a.Row.Health != "unknown" || !a.Row.Unconfirmed || a.Row.Problem != want || len(a.Terms) != 0 {
				s.Errorf("at first: %+v", a)
			}
			time.Sleep(lease)
			if a := s.about("billing"); a.Row.Health != "vacant" || a.Row.Leader != "" || len(a.Terms) != 0 || !strings.HasPrefix(a.Row.Problem, "the record names w1") {
				s.Errorf("after its lease: %+v", a)
			}
			s.lead(store, "billing", "w2")
			time.Sleep(4 * lease)
			if a := s.about("billing"); a.Row.Health != "ok" || a.Row.Unconfirmed || len(a.Terms) != 1 || a.Terms[0].Leader != "w2" {
				s.Errorf("after the next election: %+v", a)
			}
		},
		// The bar of a leader that crashed shows when it renewed last, and the change its downtime.
		"a crash shows its downtime": func(s *scene) {
			s.show(s.store)
			s.lead(s.way, "billing", "a")
			time.Sleep(time.Minute)
			s.way.off.Store(true)
			time.Sleep(3 * lease)
			s.lead(s.store, "billing", "b")
			time.Sleep(2 * lease)
			term := s.about("billing").Terms[0]
			if term.Renewed == nil || term.To.Sub(*term.Renewed) != lease || term.Down < 25_000 || term.Down > 50_000 || !term.Tardy {
				s.Errorf("the term: %+v", term)
			}
		},
		// Moves that were asked for do not make an election flap, and those of some milliseconds
		// are not marked.
		"moves that were asked for": func(s *scene) {
			s.show(s.store)
			for _, id := range []string{"a", "b"} {
				s.lead(s.store, "billing", id)
				time.Sleep(2 * lease)
			}
			asker, err := tenure.New(s.store, "billing", tenure.Config{ID: "ops"})
			if err != nil {
				s.Fatal(err)
			}
			for range 10 {
				if err := asker.HandOver(s.Context(), ""); err != nil {
					s.Fatal(err)
				}
				time.Sleep(2 * lease)
			}
			a := s.about("billing")
			if a.Row.Health != "ok" || a.Row.Changes != 0 || len(a.Terms) != 11 {
				s.Errorf("%d terms: %+v", len(a.Terms), a.Row)
			}
			for _, term := range a.Terms[:10] {
				if !term.Asked || term.Tardy {
					s.Errorf("a term: %+v", term)
				}
			}
		},
		// At a first start, it is normal that nobody leads for one lease. Then it is not.
		"the first start": func(s *scene) {
			store := memory.NewPolled()
			s.show(store, every(time.Second))
			time.Sleep(time.Minute) // there is no record yet
			store.Put("billing", []byte(`{"leaderID":"","term":0,"seq":1,"leaseMillis":15000,"nonce":"v"}`))
			time.Sleep(5 * time.Second)
			if row := s.about("billing").Row; row.Health != "starting" || !strings.HasPrefix(row.Problem, "the record is vacant") {
				s.Errorf("at first: %+v", row)
			}
			time.Sleep(lease)
			if row := s.about("billing").Row; row.Health != "vacant" {
				s.Errorf("after a lease: %+v", row)
			}
			store.Put("billing", []byte("junk"))
			time.Sleep(5 * time.Second)
			if o := s.overview("&health=alarm"); o.Counts["alarm"] != 1 || o.Counts["vacant"] != 1 || o.Matching != 1 || !o.Elections[0].Alarm {
				s.Errorf("with an alarm: %+v", o)
			}
		},
		// The leader releases its lease while the dashboard is cut off. The history has a gap
		// there, and does not show how the term ended.
		"an unseen change of leader": func(s *scene) {
			s.show(s.way)
			stop := s.lead(s.store, "billing", "a")
			time.Sleep(time.Minute)
			s.lead(s.store, "billing", "b")
			time.Sleep(time.Minute)
			s.way.off.Store(true)
			time.Sleep(time.Minute)
			stop()
			time.Sleep(time.Minute)
			if a := s.about("billing"); len(a.Unseen) != 1 || !a.Unseen[0].From.Equal(*a.Terms[0].To) || !a.Unseen[0].To.Equal(time.Now()) {
				s.Errorf("out of sight: %+v", a)
			}
			s.way.off.Store(false)
			time.Sleep(time.Minute)
			a := s.about("billing")
			if first := a.Terms[0]; len(a.Terms) != 2 || first.Ended != "unknown" || first.Took != nil || first.Least != nil {
				s.Errorf("the terms are %+v", a.Terms)
			}
			if len(a.Unseen) != 1 || a.Unseen[0].To.Before(a.Terms[1].From) || a.Unseen[0].To.After(a.Terms[1].From.Add(time.Second)) {
				s.Errorf("not seen: %+v", a.Unseen)
			}
		},
		// The dashboard misses renewals for less than a lease. That must not look as if the leader
		// came close to its deadline.
		"a renewal after missed ones is no sample": func(s *scene) {
			s.show(s.way)
			s.lead(s.store, "billing", "a")
			for i := range 40 {
				s.way.off.Store(true)
				time.Sleep(time.Duration(i) * 401 * time.Millisecond)
				s.way.off.Store(false)
				time.Sleep(2*lease + 123*time.Millisecond)
			}
			a := s.about("billing")
			if len(a.Renewals) < 100 {
				s.Errorf("%d renewals were seen", len(a.Renewals))
			}
			for _, r := range a.Renewals {
				if r.Left < 0.5 {
					s.Errorf("the leader renews each 5 s, and %v of its lease is shown to be left", r.Left)
				}
			}
		},
		"a store whose watch fails": func(s *scene) {
			s.fails(only("watch", errors.New("the right to subscribe is missing")))
			s.show(s.way, func(of *Source) { of.Price = 1 })
			s.lead(s.store, "billing", "a")
			time.Sleep(30 * time.Minute)
			a, of := s.about("billing"), s.overview("").Sources[0]
			if a.Row.Health != "ok" || len(a.Renewals) != 0 {
				s.Errorf("a leader that renews each 5 s: %+v, renewals %v", a.Row, a.Renewals)
			}
			if of.Pushed || a.Pushed || of.Interval != 15000 || of.PerMonth < 100 {
				s.Errorf("the store is read: %+v", of)
			}
			if n := len(a.Events); n > 5 {
				s.Errorf("%d events of one trouble that lasts", n)
			}
		},
		// In an outage of 30 minutes each error has another number. The earlier events are still
		// there.
		"trouble displaces no events": func(s *scene) {
			var failed atomic.Int64
			s.way.fail = func(context.Context, string, string) error {
				return fmt.Errorf("cut off: RequestID: %d", failed.Add(1))
			}
			s.show(s.way)
			s.lead(s.store, "billing", "a")
			time.Sleep(time.Minute)
			s.way.off.Store(true)
			time.Sleep(30 * time.Minute)
			count := map[string]int{}
			for _, e := range s.about("billing").Events {
				count[e.What]++
			}
			if count["store"] != 1 || count["trouble"] != 0 || count["elected"] != 1 || failed.Load() < 100 {
				s.Errorf("after %d failures the events are %v", failed.Load(), count)
			}
		},
		// The store is deleted and recreated twice. Each time "a" leads the first term for an hour.
		"terms of a recreated store": func(s *scene) {
			file := filepath.Join(s.TempDir(), "history")
			stop := s.remembers(s.store, file)
			for range 3 {
				s.store.Recreate()
				time.Sleep(time.Hour)
				leave := s.lead(s.store, "billing", "a")
				time.Sleep(time.Hour)
				leave()
			}
			stop()
			before := s.about("billing")
			s.remembers(s.store, file)
			time.Sleep(time.Second)
			for _, a := range []detail{before, s.about("billing")} {
				if len(a.Terms) != 3 {
					s.Fatalf("the terms are %+v", a.Terms)
				}
				for _, term := range a.Terms {
					if led := term.To.Sub(term.From); led < 59*time.Minute || led > time.Hour {
						s.Errorf("it led for %v: %+v", led, term)
					}
					if term.Took != nil && *term.Took < 0 {
						s.Errorf("it took %v ms", *term.Took)
					}
				}
			}
		},
		// The history comes from a clock that was two hours ahead.
		"a clock that went back": func(s *scene) {
			file := filepath.Join(s.TempDir(), "history")
			text := fmt.Sprintln(`{"tenure_dashboard_history":1}`)
			for i := range 6 {
				from := time.Now().Add(2*time.Hour + time.Duration(i)*time.Minute).Format(time.RFC3339)
				text += fmt.Sprintf(`{"source":"store","name":"billing","term":{"leader":"old","term":%d,"from":%q}}`, i+1, from) + "\n"
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				s.Fatal(err)
			}
			s.remembers(s.store, file)
			s.lead(s.store, "billing", "a")
			time.Sleep(time.Minute)
			a := s.about("billing")
			if len(a.Terms) != 7 || a.Row.Changes != 1 || a.Row.Health != "ok" {
				s.Errorf("got %+v of the terms %+v", a.Row, a.Terms)
			}
			for _, term := range a.Terms {
				if term.To != nil && term.To.Before(term.From) {
					s.Errorf("a term ends before it begins: %+v", term)
				}
			}
		},
	}.play(t)
}

// The remaining time is never shorter than the minimum that is shown.
func TestMinimumTimeLeft(t *testing.T) {
	all := scenes{}
	for name, c := range map[string]struct {
		polled   bool
		interval time.Duration
	}{"pushed": {}, "polled": {true, 4100 * time.Millisecond}} {
		all[name] = func(s *scene) {
			s.way.polled = c.polled
			s.show(s.way, every(c.interval))
			s.lead(s.store, "billing", "a")
			time.Sleep(time.Minute)
			for i := range 1500 {
				s.way.off.Store(i%300 < 55+i/300*5)
				time.Sleep(100*time.Millisecond + 7*time.Microsecond)
				e, err := s.store.Read(s.Context(), "billing")
				if err != nil {
					s.Fatal(err)
				}
				left := lease - time.Since(updated(s.T, e))
				if a := s.about("billing"); a.Left != nil && time.Duration(a.Left.Least)*time.Millisecond > left+time.Millisecond {
					s.Errorf("%v is left, and at least %d ms is shown", left, a.Left.Least)
				}
			}
		}
	}
	all.play(t)
}

func updated(t *testing.T, e driver.Entry) time.Time {
	t.Helper()
	var r struct{ LastUpdated time.Time }
	if err := json.Unmarshal(e.Value, &r); err != nil {
		t.Fatal(err)
	}
	return r.LastUpdated
}
