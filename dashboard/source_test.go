package dashboard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

func TestRightGrantedLate(t *testing.T) {
	all := scenes{}
	for name, led := range map[string]bool{"vacant": false, "led": true} {
		all[name] = func(s *scene) {
			s.fails(func(context.Context, string, string) error { return fmt.Errorf("call: %w", driver.ErrDenied) })
			s.show(s.way)
			if led {
				s.lead(s.store, "billing", "a")
			}
			time.Sleep(5 * time.Minute)
			of := s.overview("").Sources[0]
			if row := s.about("billing").Row; row.Health != "unknown" || row.Problem != "" || !strings.Contains(of.Problem, "refuses access") {
				s.Errorf("before: %+v; the store is %+v", row, of)
			}
			s.way.off.Store(false)
			time.Sleep(2 * time.Minute)
			if row := s.about("billing").Row; led && (row.Health != "ok" || row.Leader != "a") || !led && row.Health != "vacant" {
				s.Errorf("after: %+v", row)
			}
		}
	}
	all.play(t)
}

func TestStoreThatCannotListItsElections(t *testing.T) {
	all := scenes{}
	for why, open := range map[string]func(*scene) driver.Store{
		"it has no Inspector": func(s *scene) driver.Store { return struct{ driver.Store }{s.store} },
		"its Inspector says so": func(s *scene) driver.Store {
			s.fails(only("list", fmt.Errorf("list: %w", errors.ErrUnsupported)))
			return s.way
		},
	} {
		all[why] = func(s *scene) {
			s.show(open(s), elections())
			time.Sleep(time.Minute)
			if of := s.overview("").Sources[0]; of.Problem != cannotList {
				s.Errorf("the problem is %q", of.Problem)
			}
		}
	}
	all.play(t)
}

func TestSources(t *testing.T) {
	scenes{
		// The number of goroutines does not depend on that of elections. None outlives Run.
		"the number of goroutines does not depend on that of elections": func(s *scene) {
			s.way.off.Store(true)
			stop := s.run(Config{Sources: []Source{{Name: "store", Store: s.way, Elections: shards(1000)}}})
			time.Sleep(time.Minute)
			synctest.Wait() // until the reads and events of this moment have ended
			if n := runtime.NumGoroutine(); n > 100 {
				s.Errorf("%d goroutines", n)
			}
			stop()
			var stacks strings.Builder
			if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
				s.Fatal(err)
			}
			if text := stacks.String(); strings.Contains(text, "(*source).") {
				s.Errorf("a source still observes:\n%.3000s", text)
			}
		},
		// An election that vanishes from the store stays on the page, and costs no more requests.
		// When it is listed again, it is followed again, with the terms that were seen before.
		"an election that vanishes": func(s *scene) {
			store := memory.NewPolled()
			s.show(store, elections(), every(time.Second))
			stay, leave := s.lead(store, "billing", "a"), s.lead(store, "job", "b")
			time.Sleep(time.Minute)
			if of := s.overview("").Sources[0]; of.Elections != 2 || of.PerMinute != 120 {
				s.Errorf("with two: %+v", of)
			}
			leave()
			store.Delete("job")
			time.Sleep(2 * listEvery)
			if of := s.overview("").Sources[0]; of.PerMinute != 120 {
				s.Errorf("soon after: %+v", of)
			}
			time.Sleep(vanishedAfter)
			a, of := s.about("job"), s.overview("").Sources[0]
			if of.Elections != 2 || of.PerMinute != 60 || a.Row.Health != "vacant" || a.Record.Kind != "absent" || len(a.Terms) != 1 {
				s.Errorf("without one: %+v, %+v", of, a)
			}
			s.lead(store, "job", "c")
			time.Sleep(time.Minute)
			a, of = s.about("job"), s.overview("").Sources[0]
			if of.PerMinute != 120 || a.Row.Health != "ok" || a.Row.Leader != "c" || len(a.Terms) != 2 || a.Terms[1].AtLeast {
				s.Errorf("with two again: %+v, %+v", of, a)
			}
			stay()
			time.Sleep(time.Hour)
			if of := s.overview("").Sources[0]; of.PerMinute != 120 {
				s.Errorf("a released record has not vanished: %+v", of)
			}
		},
		// A leader in the same program keeps its lease, although the dashboard reads over the same
		// pool of four connections, with slow calls.
		"it leaves connections in a pool": func(s *scene) {
			connections := make(chan struct{}, 4)
			s.fails(func(ctx context.Context, _, _ string) error {
				select {
				case connections <- struct{}{}:
				case <-ctx.Done():
					return ctx.Err()
				}
				time.Sleep(40 * time.Millisecond)
				<-connections
				return nil
			})
			s.way.polled = true
			var lost atomic.Int64
			leave := s.lead(s.way, "billing", "a", func(c *tenure.Config) {
				c.Lease, c.OnEvent = 5*time.Second, func(e tenure.Event) {
					if e.Kind == tenure.EventLost {
						lost.Add(1)
					}
				}
			})
			time.Sleep(time.Minute)
			stop := s.run(Config{Sources: []Source{{Name: "store", Store: s.way, Elections: shards(1000)}}})
			time.Sleep(10 * time.Minute)
			if n := lost.Load(); n > 0 {
				s.Errorf("the leader lost %d terms", n)
			}
			if o := s.overview(""); o.Counts["vacant"] != 1000 {
				s.Errorf("the dashboard shows %v", o.Counts)
			}
			stop()
			leave()
			time.Sleep(time.Minute) // the last reads end
		},
		// Too many elections in a store are reported once.
		"too many elections are reported once": func(s *scene) {
			s.way.polled = true
			names := shards(20_001)
			s.way.lists(names...)
			s.show(s.way, elections(), every(time.Hour))
			time.Sleep(30 * time.Second)
			stream, _ := s.stream("", "")
			time.Sleep(5 * time.Minute)
			if text := stream.text(); strings.Contains(text, "event: source") {
				s.Errorf("it was said again:\n%.300s", text)
			}
			if of := s.overview("").Sources[0]; of.Elections != 20_000 || !strings.Contains(of.Problem, "only the first 20000") {
				s.Errorf("the source is %+v", of)
			}
			s.way.off.Store(true)
			time.Sleep(2 * time.Minute)
			s.way.off.Store(false)
			s.way.lists(names[:20_000]...)
			time.Sleep(2 * time.Minute)
			if of := s.overview("").Sources[0]; !of.OK {
				s.Errorf("with as many as are shown: %+v", of)
			}
		},
		// The orders of the overview, and the links that it shows.
		"orders and links": func(s *scene) {
			stores := map[string]*memory.Store{"east": memory.New(), "west": memory.New()}
			cfg := Config{LogURL: "https://logs.example/?q={election}", RunbookURL: "http://wiki.example/{store}"}
			for _, name := range []string{"west", "east"} {
				cfg.Sources = append(cfg.Sources, Source{Name: name, Store: stores[name], Elections: []string{"a-" + name, "z-" + name}})
			}
			s.run(cfg)
			s.lead(stores["west"], "z-west", "first")
			s.lead(stores["east"], "a-east", "second")
			time.Sleep(time.Minute)
			for sort, want := range map[string]string{
				"": "a-west z-east a-east z-west", "name": "a-east a-west z-east z-west", "store": "z-east a-east a-west z-west",
				"leader": "a-west z-east z-west a-east",
			} {
				var got []string
				o := s.overview("&sort=" + sort)
				for _, e := range o.Elections {
					got = append(got, e.Name)
				}
				if text := strings.Join(got, " "); text != want {
					s.Errorf("by %q: %s", sort, text)
				}
				if o.Links.Log != cfg.LogURL || o.Links.Runbook != cfg.RunbookURL {
					s.Errorf("the links: %+v", o.Links)
				}
			}
		},
		// A store that pushes is away: within 3 s one line says so, the elections keep their
		// leaders as last known, and the line goes when the store is back.
		"an outage of a store that pushes": func(s *scene) {
			// Calls wait for their contexts, and two seconds later it pushes that nothing is
			// pushed.
			s.way.fail = func(ctx context.Context, op, _ string) error {
				if op == "read" {
					<-ctx.Done()
				}
				return fmt.Errorf("outbound buffer limit exceeded\n: %w", errors.Join(driver.ErrConnecting, ctx.Err()))
			}
			names := []string{"a", "b", "c"}
			s.show(s.way, elections(names...))
			for _, name := range names {
				s.lead(s.store, name, "leader of "+name)
			}
			time.Sleep(time.Minute)
			began := time.Now()
			s.way.off.Store(true)
			time.Sleep(2 * time.Second)
			s.way.pushes(driver.Entry{Lost: fmt.Errorf("no pushes: %w", driver.ErrConnecting)})
			time.Sleep(999 * time.Millisecond)
			for range 2 { // within 3 s, and after the lease
				o := s.overview("")
				if of := o.Sources[0]; of.OK || of.Away == nil || of.Problem != "there is no connection to the store" || of.Away.Before(began) {
					s.Errorf("the store: %+v", of)
				}
				for _, e := range o.Elections {
					if e.Health != "unknown" || e.Problem != "" || e.Leader != "leader of "+e.Name || e.LastKnown == nil || e.LastKnown.After(began.Add(time.Second)) {
						s.Errorf("an election: %+v", e)
					}
				}
				time.Sleep(time.Minute)
			}
			s.way.off.Store(false)
			time.Sleep(checkEvery + time.Second)
			if of := s.overview("").Sources[0]; !of.OK {
				s.Errorf("soon after the outage: %+v", of)
			}
			time.Sleep(2 * lease)
			a := s.about("a")
			if a.Row.Health != "ok" || a.Row.Leader != "leader of a" || a.Row.LastKnown != nil || len(a.Terms) != 1 {
				s.Errorf("after the outage: %+v", a)
			}
			if len(a.Outages) != 1 || a.Outages[0].To == nil || !strings.Contains(a.Outages[0].Detail, "outbound buffer") {
				s.Errorf("the outages: %+v", a.Outages)
			}
			var said []string
			for _, e := range a.Events {
				if e.What == "store" || e.What == "trouble" {
					said = append(said, e.Text)
				}
			}
			if len(said) != 1 || !strings.HasPrefix(said[0], "there is no connection to the store, for 2 min") {
				s.Errorf("the events about it: %q", said)
			}
		},
		// One election that may not be read is no outage of its store.
		"one election that fails is no outage": func(s *scene) {
			s.fails(func(_ context.Context, _, key string) error {
				if key == "secret" {
					return fmt.Errorf("read: %w", driver.ErrDenied)
				}
				return nil
			})
			s.way.polled = true
			s.show(s.way, elections("billing", "secret"))
			s.lead(s.store, "billing", "a")
			for range 100 {
				time.Sleep(1700 * time.Millisecond)
				if of := s.overview("").Sources[0]; of.Away != nil && time.Since(*of.Away) > time.Second {
					s.Fatalf("the store: %+v", of)
				}
			}
			if row := s.about("secret").Row; row.Health != "unknown" || !strings.Contains(row.Problem, "refuses access") {
				s.Errorf("the election: %+v", row)
			}
			if row := s.about("billing").Row; row.Health != "ok" {
				s.Errorf("the other election: %+v", row)
			}
		},
	}.play(t)
}
