package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/dashboard"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// locked is a store to which the dashboard lacks a right.
type locked struct {
	*memory.Store
	granted atomic.Bool
}

func (l *locked) Read(ctx context.Context, key string) (driver.Entry, error) {
	if !l.granted.Load() {
		return driver.Entry{}, fmt.Errorf("read: %w", driver.ErrDenied)
	}
	return l.Store.Read(ctx, key)
}

func (l *locked) Watch(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
	if !l.granted.Load() {
		return nil, fmt.Errorf("watch: %w", driver.ErrDenied)
	}
	return l.Store.Watch(ctx, key, see)
}

func TestRightGrantedLate(t *testing.T) {
	for name, led := range map[string]bool{"vacant": false, "led": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &locked{Store: memory.New()}
				s := show(t, dashboard.Source{Name: "store", Store: store, Elections: []string{"billing"}})
				if led {
					lead(t, store.Store, "billing", "a")
				}
				time.Sleep(5 * time.Minute)
				of := s.overview("").Sources[0]
				if row := s.about("billing").Row; row.Health != "unknown" || row.Problem != "" || !strings.Contains(of.Problem, "refuses access") {
					t.Errorf("before: %+v; the store is %+v", row, of)
				}
				store.granted.Store(true)
				time.Sleep(2 * time.Minute)
				if row := s.about("billing").Row; led && (row.Health != "ok" || row.Leader != "a") || !led && row.Health != "vacant" {
					t.Errorf("after: %+v", row)
				}
			})
		})
	}
}

// No goroutine outlives Run.
func TestRunLeavesNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := shards(1000)
		store := &cut{Store: memory.New(), off: true}
		d, err := dashboard.New(dashboard.Config{Sources: []dashboard.Source{{Name: "store", Store: store, Elections: names}}, Clock: clock.Standard{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { d.Run(ctx); close(ended) }()
		time.Sleep(time.Minute)
		cancel()
		<-ended
		var stacks strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
			t.Fatal(err)
		}
		if text := stacks.String(); strings.Contains(text, "dashboard.(*election).awaitStore") {
			t.Errorf("an election still waits for the store:\n%.3000s", text)
		}
	})
}

// pooled is a store over four connections, with slow calls.
type pooled struct {
	*memory.Polled
	connections chan struct{}
}

func (p *pooled) acquire(ctx context.Context) (release func(), err error) {
	select {
	case p.connections <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	time.Sleep(40 * time.Millisecond)
	return func() { <-p.connections }, nil
}

func (p *pooled) Read(ctx context.Context, key string) (driver.Entry, error) {
	release, err := p.acquire(ctx)
	if err != nil {
		return driver.Entry{}, err
	}
	defer release()
	return p.Polled.Read(ctx, key)
}

func (p *pooled) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	release, err := p.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	return p.Polled.CompareAndSwap(ctx, key, prev, value)
}

// A leader in the same program keeps its lease, although the dashboard reads over the same pool.
func TestDashboardLeavesConnectionsInAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &pooled{memory.NewPolled(), make(chan struct{}, 4)}
		names := shards(1000)
		var lost atomic.Int64
		e, err := tenure.New(store, "billing", tenure.Config{ID: "a", Lease: 5 * time.Second, Clock: clock.Standard{}, OnEvent: func(e tenure.Event) {
			if e.Kind == tenure.EventLost {
				lost.Add(1)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error { <-ctx.Done(); return nil })
		}()
		time.Sleep(time.Minute)
		d, err := dashboard.New(dashboard.Config{Sources: []dashboard.Source{{Name: "store", Store: store, Elections: names}}, Clock: clock.Standard{}})
		if err != nil {
			t.Fatal(err)
		}
		go d.Run(ctx)
		time.Sleep(10 * time.Minute)
		if n := lost.Load(); n > 0 {
			t.Errorf("the leader lost %d terms", n)
		}
		if o := (shown{t, d}).overview(""); o.Counts["vacant"] != len(names) {
			t.Errorf("the dashboard shows %v", o.Counts)
		}
		cancel()
		<-ended
		time.Sleep(time.Minute) // the last reads end
	})
}

// Too many elections in a store are reported once.
func TestTooManyElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lister{Polled: memory.NewPolled()}
		names := shards(20_001)
		store.lists(nil, names...)
		s := show(t, dashboard.Source{Name: "store", Store: store, Interval: time.Hour})
		time.Sleep(30 * time.Second)
		stream, _ := s.stream("", "")
		time.Sleep(5 * time.Minute)
		if text := stream.text(); strings.Contains(text, "event: source") {
			t.Errorf("it was said again:\n%.300s", text)
		}
		if of := s.overview("").Sources[0]; of.Elections != 20_000 || !strings.Contains(of.Problem, "only the first 20000") {
			t.Errorf("the source is %+v", of)
		}
		store.lists(errors.New("away"))
		time.Sleep(2 * time.Minute)
		store.lists(nil, names[:20_000]...)
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
		cfg := dashboard.Config{Clock: clock.Standard{}, LogURL: "https://logs.example/?q={election}", RunbookURL: "http://wiki.example/{store}"}
		for _, name := range []string{"west", "east"} {
			cfg.Sources = append(cfg.Sources, dashboard.Source{Name: name, Store: stores[name], Elections: []string{"a-" + name, "z-" + name}})
		}
		d, err := dashboard.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		go d.Run(t.Context())
		s := shown{t, d}
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
	const script = "javascript:alert(1)"
	source := dashboard.Source{Name: "store", Store: memory.New(), Elections: []string{"x"}}
	if _, err := dashboard.New(dashboard.Config{Sources: []dashboard.Source{source}, LogURL: script}); err == nil || !strings.Contains(err.Error(), "no http or https URL") {
		t.Errorf("a script as a link: %v", err)
	}
}

// A new election is there within 10 s.
func TestNewElectionIsListedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lister{Polled: memory.NewPolled()}
		s := show(t, dashboard.Source{Name: "store", Store: store})
		time.Sleep(31 * time.Second)
		store.lists(nil, "billing")
		time.Sleep(10 * time.Second)
		if of := s.overview("").Sources[0]; of.Elections != 1 || time.Since(of.Listed) > 10*time.Second {
			t.Errorf("the store: %+v", of)
		}
	})
}

// away is a store that can be taken away. Then calls wait for their contexts, and two seconds later
// it pushes that nothing is pushed. When it is back, the next renewal is pushed.
type away struct {
	*memory.Store
	off   atomic.Bool
	watch chan func(driver.Entry)
}

func newAway() *away { return &away{Store: memory.New(), watch: make(chan func(driver.Entry), 100)} }

func (a *away) Read(ctx context.Context, key string) (driver.Entry, error) {
	if a.off.Load() {
		<-ctx.Done()
		return driver.Entry{}, fmt.Errorf("outbound buffer limit exceeded\n: %w", errors.Join(driver.ErrConnecting, ctx.Err()))
	}
	return a.Store.Read(ctx, key)
}

func (a *away) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	a.watch <- see
	return a.Store.Watch(ctx, key, func(e driver.Entry) {
		if !a.off.Load() {
			see(e)
		}
	})
}

func (a *away) set(off bool) {
	a.off.Store(off)
	if !off {
		return
	}
	time.Sleep(2 * time.Second)
	for range len(a.watch) {
		see := <-a.watch
		see(driver.Entry{Lost: fmt.Errorf("no pushes: %w", driver.ErrConnecting)})
		a.watch <- see
	}
}

// A store that pushes is away: within 3 s one line says so, the elections keep their leaders as
// last known, and the line goes when the store is back.
func TestOutageOfAStoreThatPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newAway()
		names := []string{"a", "b", "c"}
		s := show(t, dashboard.Source{Name: "store", Store: store, Elections: names})
		for _, name := range names {
			lead(t, store.Store, name, "leader of "+name)
		}
		time.Sleep(time.Minute)
		began := time.Now()
		store.set(true)
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
		store.set(false)
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

const checkEvery = 2 * time.Second

// A store that is read is away within one poll.
func TestOutageOfAStoreThatIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		way := &polledCut{Polled: store}
		s := show(t, dashboard.Source{Name: "store", Store: way, Elections: []string{"billing"}, Interval: 5 * time.Second})
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

// polledCut is a store that is read, and can be cut off.
type polledCut struct {
	*memory.Polled
	off    atomic.Bool
	denied string // the election that may not be read
}

func (p *polledCut) Read(ctx context.Context, key string) (driver.Entry, error) {
	if p.off.Load() {
		return driver.Entry{}, errors.New("cut off")
	}
	if key == p.denied {
		return driver.Entry{}, fmt.Errorf("read: %w", driver.ErrDenied)
	}
	return p.Polled.Read(ctx, key)
}

// One election that may not be read is no outage of its store.
func TestOneElectionThatFailsIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		s := show(t, dashboard.Source{Name: "store", Store: &polledCut{Polled: store, denied: "secret"}, Elections: []string{"billing", "secret"}})
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

// An outage is known after a restart of the dashboard.
func TestHistoryKeepsOutages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		way := &polledCut{Polled: store}
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
