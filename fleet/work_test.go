package fleet_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/fleet"
	"github.com/tenure-go/tenure/nomination"
)

func TestWork(t *testing.T) {
	all := scenes{
		// Even if each work takes long.
		"at most HandOvers works are asked to finish at a time": {60, func(p *port) {
			const atOnce, finishing = 3, 2 * time.Second
			var now, most atomic.Int64
			p.work = func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				if errors.Is(context.Cause(ctx), nomination.ErrWithdrawn) {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(finishing)
					now.Add(-1)
				}
				return nil
			}
			p.joinWith(func(c *fleet.Config) { c.HandOvers = atOnce }, "a")
			time.Sleep(calm)
			p.join("b")
			time.Sleep(20 * time.Second)
			s := p.member("a").fleet.Status()
			if s.Moving == 0 || s.Led-s.Assigned != s.Moving {
				p.t.Errorf("%+v while elections are handed over", s)
			}
			p.rest("a", "b")
			if most.Load() != atOnce {
				p.t.Errorf("%d were handed over at a time, not %d", most.Load(), atOnce)
			}
			if s := p.member("a").fleet.Status(); s.Moving != 0 || s.Led != s.Assigned {
				p.t.Errorf("%+v at rest", s)
			}
			p.leave("a", "b")
		}},
		// When a member ends, all its works finish soon, however long each takes.
		"a leaving member finishes all work at once": {60, func(p *port) {
			const finishing = 5 * time.Second
			var asked atomic.Int64
			p.work = func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				asked.Add(1)
				time.Sleep(finishing)
				return nil
			}
			p.joinWith(func(c *fleet.Config) { c.HandOvers = 5 }, "a", "b")
			time.Sleep(calm)
			before := time.Now()
			time.AfterFunc(100*time.Millisecond, func() {
				if n := asked.Load(); n != 5 {
					p.t.Errorf("%d were asked to finish at once", n)
				}
			})
			p.leave("a")
			if took := time.Since(before); took > finishing+3*time.Second {
				p.t.Errorf("ending took %v", took)
			}
			p.rest("b")
		}},
		// Work that needs no goroutine is counted like any other.
		"handlers": {50, func(p *port) {
			p.steady = true
			p.join("a", "b")
			p.rest("a", "b")
			for id, n := range p.leads() {
				f := p.member(id).fleet
				if s := f.Status(); s.Led != n || len(f.Led()) != n {
					p.t.Errorf("%s leads %d, and says %d: %v", id, n, s.Led, f.Led())
				}
			}
			p.join("c")
			p.rest("a", "b", "c")
			p.leave("a")
			p.rest("b", "c")
		}},
		// Resigning ends a term. The member still takes part in the election.
		"work that resigns is elected again": {2, func(p *port) {
			p.steady = true
			p.join("a")
			time.Sleep(calm)
			p.mu.Lock()
			first := p.terms[p.names[0]][0].term
			p.mu.Unlock()
			if err := first.Resign(p.t.Context()); err != nil {
				p.t.Fatal(err)
			}
			p.end(first)
			time.Sleep(time.Hour)
			if token := p.tokens("a")[p.names[0]]; token <= first.Token() {
				p.t.Errorf("an hour later the token is %d, after %d", token, first.Token())
			}
		}},
	}
	// Work that ends without being asked must not end the fleet, nor make its election go round in
	// a circle.
	for _, how := range []error{nil, errors.New("no room"), tenure.ErrDecline} {
		all[fmt.Sprint("work that ends unasked with ", how)] = scene{10, func(p *port) {
			var refused atomic.Int64
			p.works = map[string]tenure.Lead{"a": func(ctx context.Context, term *tenure.Term) error {
				if term.Election() == p.names[3] {
					refused.Add(1)
					return how
				}
				<-ctx.Done()
				return nil
			}}
			p.join("a", "b")
			time.Sleep(10 * calm)
			most := 0
			for range 5 { // it may be between two leaders now
				time.Sleep(time.Second)
				n := p.leads()
				most = max(most, n["a"]+n["b"])
			}
			if most != len(p.names) {
				p.t.Errorf("%d are led at most", most)
			}
			if n := refused.Load(); n > 12 {
				p.t.Errorf("one was begun %d times in %v", n, 10*calm)
			}
		}}
	}
	all.play(t, watched)
}

func TestElectionsComeAndGo(t *testing.T) {
	scenes{
		"lists change": {40, func(p *port) {
			p.join("a", "b")
			time.Sleep(calm)
			all := p.names
			for _, names := range [][]string{all[:10], all, nil, all[20:], append(slices.Clone(all[:5]), "another")} {
				p.names = names
				p.set(names, "a", "b")
				p.rest("a", "b")
			}
			f := p.member("a").fleet
			if f.Election("another").Name() != "another" || f.Election(all[30]) != nil {
				p.t.Error("Election finds what there is not, or not what there is")
			}
			for _, wrong := range [][]string{{"x", "x"}, {"test/members/1"}, {""}} {
				if f.SetElections(wrong) == nil {
					p.t.Errorf("%q was accepted", wrong)
				}
			}
			if s := f.Status(); s.Elections != 6 {
				p.t.Errorf("%+v after what was refused", s)
			}
		}},
		// It has a leader again as soon as after any hand-over.
		"one is restored at once": {10, func(p *port) {
			p.join("a")
			time.Sleep(calm)
			p.forget()
			for _, names := range [][]string{p.names[:5], p.names} {
				p.set(names, "a")
				synctest.Wait()
			}
			p.rest("a")
			p.after(5, p.limit())
		}},
		// An election that was released or never started may start again under its name.
		"one that is removed at once is not started": {3, func(p *port) {
			p.join("a")
			for _, names := range [][]string{{"x"}, p.names, {"x", "y"}, p.names} {
				p.set(names, "a")
			}
			p.rest("a")
		}},
		// A program is rolled out to one member after another, so members know different elections
		// for a while.
		"members have different lists": {60, func(p *port) {
			all := p.names
			p.names = all[:50]
			p.join("a", "b", "c")
			p.rest("a", "b", "c")
			p.names = all
			p.leave("c")
			p.join("d")
			time.Sleep(calm)
			p.led() // also the elections that only c knows
			p.set(all, "a", "b")
			time.Sleep(calm)
			p.rest("a", "b", "d")
		}},
		// Elections that were removed while the fleet ends come back as new ones.
		"lists change while the fleet ends": {2, func(p *port) {
			p.work = func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				time.Sleep(5 * time.Second)
				return nil
			}
			p.join("a")
			m := p.member("a")
			time.Sleep(calm)
			time.AfterFunc(time.Second, func() { p.set(p.names[:1], "a") })
			p.leave("a")
			if err := m.fleet.SetElections(p.names); err != nil {
				p.t.Error(err)
			}
		}},
	}.play(t)
}

// countedReads is a polled store that counts the reads.
type countedReads struct {
	driver.Store
	mu    sync.Mutex
	reads map[string]int
}

func (c *countedReads) Read(ctx context.Context, key string) (driver.Entry, error) {
	c.mu.Lock()
	c.reads[key]++
	c.mu.Unlock()
	return c.Store.Read(ctx, key)
}

// of returns how often the keys of these names were read.
func (c *countedReads) of(names []string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		n += c.reads[name]
	}
	return n
}

// TestRemovedElectionsAreNotRead: names that come and go must not make a store slower and slower.
func TestRemovedElectionsAreNotRead(t *testing.T) {
	store := &countedReads{}
	scenes{"": {40, func(p *port) {
		p.join("a", "b")
		time.Sleep(calm)
		stay, went := p.names[:10], p.names[10:]
		p.set(stay, "a", "b")
		time.Sleep(calm)
		before, others := store.of(went), store.of(stay)
		time.Sleep(time.Hour)
		if n := store.of(went) - before; n != 0 || store.of(stay) == others {
			p.t.Errorf("%d reads of elections that went, and %d of others", n, store.of(stay)-others)
		}
	}}}.play(t, func() driver.Store {
		store.Store, store.reads = memory.NewPolled(), map[string]int{}
		return store
	})
}

// denied is a store that refuses to read keys with a prefix.
type denied struct {
	driver.Store
	prefix string
}

func (d denied) Read(ctx context.Context, key string) (driver.Entry, error) {
	if strings.HasPrefix(key, d.prefix) {
		return driver.Entry{}, driver.ErrDenied
	}
	return d.Store.Read(ctx, key)
}

func TestDeniedReads(t *testing.T) {
	// how many are led while the fleet goes on; 0: it ends
	for prefix, leads := range map[string]int{"test/members/": 0, "": 0, "shard-": 0, "shard-007": 19} {
		scenes{fmt.Sprintf("%q", prefix): {20, func(p *port) {
			f, err := fleet.New(p.store, "test", p.config("a"))
			if err != nil {
				p.t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(p.t.Context(), calm)
			defer cancel()
			var led sync.Map
			err = f.Run(ctx, tenure.Lead(func(ctx context.Context, term *tenure.Term) error {
				led.Store(term.Election(), true)
				<-ctx.Done()
				return nil
			}))
			n := 0
			led.Range(func(any, any) bool { n++; return true })
			if !errors.Is(err, driver.ErrDenied) || (ctx.Err() != nil) != (leads > 0) || n < leads {
				p.t.Errorf("Run returned %v; %v; %d were led", err, ctx.Err(), n)
			}
		}}}.play(t, func() driver.Store { return denied{memory.New(), prefix} })
	}
}

func TestConfigsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		field, says string
		change      func(*fleet.Config)
	}{
		{"Elections", "twice", func(c *fleet.Config) { c.Elections = []string{"x", "y", "x"} }},
		{"Elections", "for the seats", func(c *fleet.Config) { c.Elections = []string{"test/members/3"} }},
		{"Name", "empty", func(c *fleet.Config) { c.Elections = []string{"x", ""} }},
		{"Members", "1025", func(c *fleet.Config) { c.Members = 1025 }},
		{"HandOvers", "-1", func(c *fleet.Config) { c.HandOvers = -1 }},
		{"Settle", "2h", func(c *fleet.Config) { c.Settle = 2 * time.Hour }},
		{"Presence", "1ms", func(c *fleet.Config) { c.Presence = time.Millisecond }},
		{"Election.Nomination.Nominator", "unset", func(c *fleet.Config) { c.Election.Nomination = nomination.By(nominator{}) }},
		{"Election.Nomination.Only", "unset", func(c *fleet.Config) { c.Election.Nomination.Only = true }},
		{"Election.Priority", "unset", func(c *fleet.Config) { c.Election.Priority = 1 }},
		{"Election.Lease", "too short for Renew", func(c *fleet.Config) { c.Election.Tuning.Renew = time.Hour }},
		{"Election.Lease", "2h", func(c *fleet.Config) { c.Election.Lease = 2 * time.Hour }},
		{"Election.Tuning.Renew", "-1s", func(c *fleet.Config) { c.Election.Tuning.Renew = -time.Second }},
	} {
		t.Run(c.field, func(t *testing.T) {
			cfg := fleet.Config{Election: tenure.Config{ID: "a"}, Elections: []string{"x"}}
			c.change(&cfg)
			_, err := fleet.New(memory.New(), "test", cfg)
			wrong, ok := errors.AsType[*tenure.ConfigError](err)
			if !ok || len(wrong.Fields) != 1 || wrong.Fields[0].Field != c.field || !strings.Contains(err.Error(), c.says) {
				t.Errorf("New returned %v", err)
			}
		})
	}
	if _, err := fleet.New(nil, "test", fleet.Config{}); err == nil {
		t.Error("without a store")
	}
	if _, err := fleet.New(memory.New(), "", fleet.Config{}); err == nil {
		t.Error("without a name")
	}
}

type nominator struct{}

func (nominator) Nominate(func(bool)) func() { return nil }

var seeds = flag.Uint64("seeds", 1, "number of runs of TestChaos, each with a seed of its own")

// TestChaos starts, ends and cuts off members at random, over a faulty store. There are never two
// leaders, and some time after the last fault all elections are spread again. For more runs:
//
//	go test ./fleet -run TestChaos -seeds 20
func TestChaos(t *testing.T) {
	for seed := range *seeds {
		scenes{fmt.Sprint("seed ", seed): {40, func(p *port) { chaos(p, seed) }}}.play(t, watched)
	}
}

func chaos(p *port, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 0))
	alive, next := []string{}, 0
	join := func() {
		id := fmt.Sprint("m", next)
		next++
		alive = append(alive, id)
		p.join(id)
		p.member(id).line.SetPlan(faults.Plan{Chances: faults.Chances{
			faults.LoseRequest: 0.02, faults.LoseAnswer: 0.02, faults.DelayBefore: 0.1, faults.DelayAfter: 0.1, faults.LandLate: 0.01,
			faults.Drop: 0.02, faults.Delay: 0.1, faults.Double: 0.05,
		}, MaxDelay: 2 * time.Second})
	}
	for range 4 {
		join()
	}
	for range 30 {
		time.Sleep(time.Duration(dice.IntN(int(lease))))
		i := dice.IntN(len(alive))
		switch id := alive[i]; dice.IntN(5) {
		case 0:
			join()
		case 1:
			if len(alive) > 1 {
				alive = slices.Delete(alive, i, i+1)
				p.member(id).line.SetPlan(faults.Plan{})
				p.leave(id)
			}
		case 2:
			p.member(id).line.Partition()
		default:
			p.member(id).line.Heal()
		}
	}
	for _, id := range alive {
		p.member(id).line.SetPlan(faults.Plan{})
		p.member(id).line.Heal()
	}
	time.Sleep(20 * lease)
	p.spread(alive...)
}
