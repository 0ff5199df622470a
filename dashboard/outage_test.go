package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/dashboard"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

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
