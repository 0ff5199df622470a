package dashboard

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
	for name, led := range map[string]bool{"vacant": false, "led": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := failing(memory.New(), func(context.Context, string, string) error {
					return fmt.Errorf("call: %w", driver.ErrDenied)
				})
				s := show(t, Source{Name: "store", Store: store, Elections: []string{"billing"}})
				if led {
					lead(t, store.Store, "billing", "a")
				}
				time.Sleep(5 * time.Minute)
				of := s.overview("").Sources[0]
				if row := s.about("billing").Row; row.Health != "unknown" || row.Problem != "" || !strings.Contains(of.Problem, "refuses access") {
					t.Errorf("before: %+v; the store is %+v", row, of)
				}
				store.off.Store(false)
				time.Sleep(2 * time.Minute)
				if row := s.about("billing").Row; led && (row.Health != "ok" || row.Leader != "a") || !led && row.Health != "vacant" {
					t.Errorf("after: %+v", row)
				}
			})
		})
	}
}

func TestStoreThatCannotListItsElections(t *testing.T) {
	unable := &fake{Store: memory.New(), fail: func(_ context.Context, op, _ string) error {
		if op == "list" {
			return fmt.Errorf("list: %w", errors.ErrUnsupported)
		}
		return nil
	}}
	unable.off.Store(true)
	for why, store := range map[string]driver.Store{
		"it has no Inspector":   struct{ driver.Store }{memory.New()},
		"its Inspector says so": unable,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := show(t, Source{Name: "store", Store: store})
			time.Sleep(time.Minute)
			if of := s.overview("").Sources[0]; of.Problem != cannotList {
				t.Errorf("%s: %q", why, of.Problem)
			}
		})
	}
}

// The number of goroutines does not depend on that of elections. None outlives Run.
func TestGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := failing(memory.New(), cutOff)
		_, stop := run(t, Config{Sources: []Source{{Name: "store", Store: store, Elections: shards(1000)}}})
		time.Sleep(time.Minute)
		synctest.Wait() // until the reads and events of this moment have ended
		if n := runtime.NumGoroutine(); n > 100 {
			t.Errorf("%d goroutines", n)
		}
		stop()
		var stacks strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
			t.Fatal(err)
		}
		if text := stacks.String(); strings.Contains(text, "(*source).") {
			t.Errorf("a source still observes:\n%.3000s", text)
		}
	})
}

// An election that vanishes from the store stays on the page, and costs no more requests. When it
// is listed again, it is followed again, with the terms that were seen before.
func TestElectionThatVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		s := show(t, Source{Name: "store", Store: store, Interval: time.Second})
		stay, leave := lead(t, store, "billing", "a"), lead(t, store, "job", "b")
		time.Sleep(time.Minute)
		if of := s.overview("").Sources[0]; of.Elections != 2 || of.PerMinute != 120 {
			t.Errorf("with two: %+v", of)
		}
		leave()
		store.Delete("job")
		time.Sleep(2 * listEvery)
		if of := s.overview("").Sources[0]; of.PerMinute != 120 {
			t.Errorf("soon after: %+v", of)
		}
		time.Sleep(vanishedAfter)
		a, of := s.about("job"), s.overview("").Sources[0]
		if of.Elections != 2 || of.PerMinute != 60 || a.Row.Health != "vacant" || a.Record.Kind != "absent" || len(a.Terms) != 1 {
			t.Errorf("without one: %+v, %+v", of, a)
		}
		lead(t, store, "job", "c")
		time.Sleep(time.Minute)
		a, of = s.about("job"), s.overview("").Sources[0]
		if of.PerMinute != 120 || a.Row.Health != "ok" || a.Row.Leader != "c" || len(a.Terms) != 2 || a.Terms[1].AtLeast {
			t.Errorf("with two again: %+v, %+v", of, a)
		}
		stay()
		time.Sleep(time.Hour)
		if of := s.overview("").Sources[0]; of.PerMinute != 120 {
			t.Errorf("a released record has not vanished: %+v", of)
		}
	})
}

// A leader in the same program keeps its lease, although the dashboard reads over the same pool of
// four connections, with slow calls.
func TestDashboardLeavesConnectionsInAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connections := make(chan struct{}, 4)
		store := failing(memory.New(), func(ctx context.Context, _, _ string) error {
			select {
			case connections <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			time.Sleep(40 * time.Millisecond)
			<-connections
			return nil
		})
		store.polled = true
		var lost atomic.Int64
		leave := lead(t, store, "billing", "a", func(c *tenure.Config) {
			c.Lease, c.OnEvent = 5*time.Second, func(e tenure.Event) {
				if e.Kind == tenure.EventLost {
					lost.Add(1)
				}
			}
		})
		time.Sleep(time.Minute)
		s, stop := run(t, Config{Sources: []Source{{Name: "store", Store: store, Elections: shards(1000)}}})
		time.Sleep(10 * time.Minute)
		if n := lost.Load(); n > 0 {
			t.Errorf("the leader lost %d terms", n)
		}
		if o := s.overview(""); o.Counts["vacant"] != 1000 {
			t.Errorf("the dashboard shows %v", o.Counts)
		}
		stop()
		leave()
		time.Sleep(time.Minute) // the last reads end
	})
}

// Too many elections in a store are reported once.
func TestTooManyElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{Store: memory.New(), polled: true, fail: cutOff}
		names := shards(20_001)
		store.lists(names...)
		s := show(t, Source{Name: "store", Store: store, Interval: time.Hour})
		time.Sleep(30 * time.Second)
		stream, _ := s.stream("", "")
		time.Sleep(5 * time.Minute)
		if text := stream.text(); strings.Contains(text, "event: source") {
			t.Errorf("it was said again:\n%.300s", text)
		}
		if of := s.overview("").Sources[0]; of.Elections != 20_000 || !strings.Contains(of.Problem, "only the first 20000") {
			t.Errorf("the source is %+v", of)
		}
		store.off.Store(true)
		time.Sleep(2 * time.Minute)
		store.off.Store(false)
		store.lists(names[:20_000]...)
		time.Sleep(2 * time.Minute)
		if of := s.overview("").Sources[0]; !of.OK {
			t.Errorf("with as many as are shown: %+v", of)
		}
	})
}

// The orders of the overview, and the links that it shows.
func TestOrdersAndLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := map[string]*memory.Store{"east": memory.New(), "west": memory.New()}
		cfg := Config{LogURL: "https://logs.example/?q={election}", RunbookURL: "http://wiki.example/{store}"}
		for _, name := range []string{"west", "east"} {
			cfg.Sources = append(cfg.Sources, Source{Name: name, Store: stores[name], Elections: []string{"a-" + name, "z-" + name}})
		}
		s, _ := run(t, cfg)
		lead(t, stores["west"], "z-west", "first")
		lead(t, stores["east"], "a-east", "second")
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
				t.Errorf("by %q: %s", sort, text)
			}
			if o.Links.Log != cfg.LogURL || o.Links.Runbook != cfg.RunbookURL {
				t.Errorf("the links: %+v", o.Links)
			}
		}
	})
}

// A store that pushes is away: within 3 s one line says so, the elections keep their leaders as
// last known, and the line goes when the store is back.
func TestOutageOfAStoreThatPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Calls wait for their contexts, and two seconds later it pushes that nothing is pushed.
		store := &fake{Store: memory.New(), fail: func(ctx context.Context, op, _ string) error {
			if op == "read" {
				<-ctx.Done()
			}
			return fmt.Errorf("outbound buffer limit exceeded\n: %w", errors.Join(driver.ErrConnecting, ctx.Err()))
		}}
		names := []string{"a", "b", "c"}
		s := show(t, Source{Name: "store", Store: store, Elections: names})
		for _, name := range names {
			lead(t, store.Store, name, "leader of "+name)
		}
		time.Sleep(time.Minute)
		began := time.Now()
		store.off.Store(true)
		time.Sleep(2 * time.Second)
		store.pushes(driver.Entry{Lost: fmt.Errorf("no pushes: %w", driver.ErrConnecting)})
		time.Sleep(999 * time.Millisecond)
		for range 2 { // within 3 s, and after the lease
			o := s.overview("")
			if of := o.Sources[0]; of.OK || of.Away == nil || of.Problem != "there is no connection to the store" || of.Away.Before(began) {
				t.Errorf("the store: %+v", of)
			}
			for _, e := range o.Elections {
				if e.Health != "unknown" || e.Problem != "" || e.Leader != "leader of "+e.Name || e.LastKnown == nil || e.LastKnown.After(began.Add(time.Second)) {
					t.Errorf("an election: %+v", e)
				}
			}
			time.Sleep(time.Minute)
		}
		store.off.Store(false)
		time.Sleep(checkEvery + time.Second)
		if of := s.overview("").Sources[0]; !of.OK {
			t.Errorf("soon after the outage: %+v", of)
		}
		time.Sleep(2 * lease)
		a := s.about("a")
		if a.Row.Health != "ok" || a.Row.Leader != "leader of a" || a.Row.LastKnown != nil || len(a.Terms) != 1 {
			t.Errorf("after the outage: %+v", a)
		}
		if len(a.Outages) != 1 || a.Outages[0].To == nil || !strings.Contains(a.Outages[0].Detail, "outbound buffer") {
			t.Errorf("the outages: %+v", a.Outages)
		}
		var said []string
		for _, e := range a.Events {
			if e.What == "store" || e.What == "trouble" {
				said = append(said, e.Text)
			}
		}
		if len(said) != 1 || !strings.HasPrefix(said[0], "there is no connection to the store, for 2 min") {
			t.Errorf("the events about it: %q", said)
		}
	})
}

// A store that is read is away within one poll.
func TestOutageOfAStoreThatIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		way := &fake{Store: store, polled: true, fail: cutOff}
		s := show(t, Source{Name: "store", Store: way, Elections: []string{"billing"}, Interval: 5 * time.Second})
		lead(t, store, "billing", "a")
		time.Sleep(time.Minute)
		way.off.Store(true)
		time.Sleep(6 * time.Second)
		if of, row := s.overview("").Sources[0], s.about("billing").Row; of.Away == nil || row.Leader != "a" || row.LastKnown == nil {
			t.Errorf("after one poll: %+v, %+v", of, row)
		}
		way.off.Store(false)
		time.Sleep(checkEvery + time.Millisecond)
		if of := s.overview("").Sources[0]; !of.OK {
			t.Errorf("when it is back: %+v", of)
		}
	})
}

// One election that may not be read is no outage of its store.
func TestOneElectionThatFailsIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		way := failing(store, func(_ context.Context, _, key string) error {
			if key == "secret" {
				return fmt.Errorf("read: %w", driver.ErrDenied)
			}
			return nil
		})
		way.polled = true
		s := show(t, Source{Name: "store", Store: way, Elections: []string{"billing", "secret"}})
		lead(t, store, "billing", "a")
		for range 100 {
			time.Sleep(1700 * time.Millisecond)
			if of := s.overview("").Sources[0]; of.Away != nil && time.Since(*of.Away) > time.Second {
				t.Fatalf("the store: %+v", of)
			}
		}
		if row := s.about("secret").Row; row.Health != "unknown" || !strings.Contains(row.Problem, "refuses access") {
			t.Errorf("the election: %+v", row)
		}
		if row := s.about("billing").Row; row.Health != "ok" {
			t.Errorf("the other election: %+v", row)
		}
	})
}

// An outage is known after a restart of the
func TestHistoryKeepsOutages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		way := &fake{Store: store, polled: true, fail: cutOff}
		lead(t, store, "billing", "a")
		for n := range 3 {
			s, stop := remembering(t, way, file)
			time.Sleep(time.Minute)
			way.off.Store(true)
			time.Sleep(time.Minute)
			way.off.Store(false)
			time.Sleep(time.Minute)
			if all := s.about("billing").Outages; len(all) != n+1 || all[0].To == nil {
				t.Errorf("the outages are %+v", all)
			}
			stop()
		}
	})
}
