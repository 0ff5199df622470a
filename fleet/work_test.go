package fleet_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/fleet"
)

// At most HandOvers works are asked to finish at a time, even if each takes long.
func TestHandOversArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, memory.New(), 60)
		const atOnce, finishing = 3, 2 * time.Second
		var now, most atomic.Int64
		p.work = func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), tenure.ErrNominationLost) {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(finishing)
				now.Add(-1)
			}
			return nil
		}
		cfg := p.config("a")
		cfg.HandOvers = atOnce
		p.joinWith(cfg)
		time.Sleep(calm)
		p.join("b")
		time.Sleep(20 * time.Second)
		s := p.member("a").fleet.Status()
		if s.Moving == 0 || s.Led-s.Assigned != s.Moving {
			t.Errorf("%+v while elections are handed over", s)
		}
		time.Sleep(calm)
		p.spread("a", "b")
		if most.Load() != atOnce {
			t.Errorf("%d were handed over at a time, not %d", most.Load(), atOnce)
		}
		if s := p.member("a").fleet.Status(); s.Moving != 0 || s.Led != s.Assigned {
			t.Errorf("%+v at rest", s)
		}
		p.leave("a", "b")
	})
}

// When a member ends, all its works finish soon, however long each takes.
func TestLeavingMemberFinishesAllWorkAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, memory.New(), 60)
		const finishing = 5 * time.Second
		var asked atomic.Int64
		p.work = func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			asked.Add(1)
			time.Sleep(finishing)
			return nil
		}
		for _, id := range []string{"a", "b"} {
			cfg := p.config(id)
			cfg.HandOvers = 5
			p.joinWith(cfg)
		}
		time.Sleep(calm)
		before := time.Now()
		time.AfterFunc(100*time.Millisecond, func() {
			if n := asked.Load(); n != 5 {
				t.Errorf("%d were asked to finish at once", n)
			}
		})
		p.leave("a")
		if took := time.Since(before); took > finishing+3*time.Second {
			t.Errorf("ending took %v", took)
		}
		time.Sleep(calm)
		p.spread("b")
	})
}

// Work that ends without being asked must not end the fleet, nor make its election go round in a
// circle.
func TestWorkThatEndsUnaskedDeclines(t *testing.T) {
	for _, how := range []error{nil, errors.New("no room"), tenure.ErrDecline} {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPort(t, memory.New(), 10)
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
					t.Errorf("%d are led at most", most)
				}
				if n := refused.Load(); n > 12 {
					t.Errorf("one was begun %d times in %v", n, 10*calm)
				}
			})
		})
	}
}

// Work that needs no goroutine is counted like any other.
func TestHandlerWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, memory.New(), 50)
		p.steady = true
		p.join("a", "b")
		time.Sleep(calm)
		p.spread("a", "b")
		for id, n := range p.leads() {
			f := p.member(id).fleet
			if s := f.Status(); s.Led != n || len(f.Led()) != n {
				t.Errorf("%s leads %d, and says %d: %v", id, n, s.Led, f.Led())
			}
		}
		p.join("c")
		time.Sleep(calm)
		p.spread("a", "b", "c")
		p.leave("a")
		time.Sleep(calm)
		p.spread("b", "c")
	})
}

// A member that is asked for its seat takes it again, and does not count as missing.
func TestSeatHandOverMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, memory.New(), 50)
		p.join("a", "b", "c")
		time.Sleep(calm)
		p.forget()
		s := p.member("a").fleet.Status()
		for _, m := range s.Members {
			e, err := tenure.New(p.store, fmt.Sprint("test/members/", m.Seat), tenure.Config{Clock: clock.Standard{}})
			if err == nil {
				err = e.HandOver(t.Context(), "")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(calm)
		p.spread("a", "b", "c")
		p.after(0, 0)
		now := p.member("a").fleet.Status()
		for i, m := range now.Members {
			if m.Seat != s.Members[i].Seat || m.ID != s.Members[i].ID || m.Term <= s.Members[i].Term || !m.Counts {
				t.Errorf("%+v was %+v", m, s.Members[i])
			}
		}
	})
}

func TestElectionsComeAndGo(t *testing.T) {
	bubbles(t, 40, func(p *port) {
		p.join("a", "b")
		time.Sleep(calm)
		all := p.names
		for _, names := range [][]string{all[:10], all, nil, all[20:], append(slices.Clone(all[:5]), "another")} {
			p.names = names
			for _, id := range []string{"a", "b"} {
				if err := p.member(id).fleet.SetElections(names); err != nil {
					p.t.Fatal(err)
				}
			}
			time.Sleep(calm)
			p.spread("a", "b")
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
	})
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
	for _, spread := range []bool{true, false} {
		t.Run(fmt.Sprint("spread=", spread), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &countedReads{Store: memory.NewPolled(), reads: map[string]int{}}
				p := newPort(t, store, 40)
				for _, id := range []string{"a", "b"} {
					cfg := p.config(id)
					cfg.Spread = spread
					p.joinWith(cfg)
				}
				time.Sleep(calm)
				stay, went := p.names[:10], p.names[10:]
				for _, id := range []string{"a", "b"} {
					if err := p.member(id).fleet.SetElections(stay); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(calm)
				before, others := store.of(went), store.of(stay)
				time.Sleep(time.Hour)
				if n := store.of(went) - before; n != 0 || store.of(stay) == others {
					t.Errorf("%d reads of elections that went, and %d of others", n, store.of(stay)-others)
				}
			})
		})
	}
}

// TestElectionRestoredAtOnce: the election has a leader again as soon as after any hand-over.
func TestElectionRestoredAtOnce(t *testing.T) {
	bubbles(t, 10, func(p *port) {
		p.join("a")
		time.Sleep(calm)
		p.forget()
		f := p.member("a").fleet
		for _, names := range [][]string{p.names[:5], p.names} {
			if err := f.SetElections(names); err != nil {
				p.t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(calm)
		p.spread("a")
		p.after(5, p.limit())
	})
}

// An election that was released or never started may start again under its name.
func TestElectionRemovedAtOnceIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, memory.New(), 3)
		p.join("a")
		f := p.member("a").fleet
		for _, names := range [][]string{{"x"}, p.names, {"x", "y"}, p.names} {
			if err := f.SetElections(names); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(calm)
		p.spread("a")
	})
}

// A program is rolled out to one member after another, so members know different elections for a
// while.
func TestMembersWithDifferentLists(t *testing.T) {
	bubbles(t, 60, func(p *port) {
		all := p.names
		p.names = all[:50]
		p.join("a", "b", "c")
		time.Sleep(calm)
		p.spread("a", "b", "c")
		p.names = all
		p.leave("c")
		p.join("d")
		time.Sleep(calm)
		p.led() // also the elections that only c knows
		for _, id := range []string{"a", "b"} {
			if err := p.member(id).fleet.SetElections(all); err != nil {
				p.t.Fatal(err)
			}
		}
		time.Sleep(2 * calm)
		p.spread("a", "b", "d")
	})
}

func TestWithoutSpreadTheFirstMemberLeads(t *testing.T) {
	bubbles(t, 20, func(p *port) {
		for _, id := range []string{"a", "b"} {
			cfg := p.config(id)
			cfg.Spread = false
			p.joinWith(cfg)
		}
		time.Sleep(calm)
		p.led()
		p.leave("a")
		time.Sleep(calm)
		p.spread("b")
		if s := p.member("b").fleet.Status(); len(s.Members) > 0 || s.Led != 20 || s.Assigned != 0 {
			p.t.Errorf("%+v", s)
		}
	})
}

func TestFleetRunsOnceAtATimeAndAgain(t *testing.T) {
	bubbles(t, 10, func(p *port) {
		p.join("a")
		m := p.member("a")
		time.Sleep(calm)
		if err := m.fleet.Run(p.t.Context(), tenure.Lead(m.lead)); !errors.Is(err, tenure.ErrRunning) {
			p.t.Errorf("a second Run: %v", err)
		}
		p.join("b")
		p.leave("a")
		time.Sleep(calm)
		p.spread("b")
		p.run(m)
		time.Sleep(calm)
		p.spread("a", "b")
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
	for prefix, spread := range map[string]bool{"test/members/": true, "": false, "shard-": true} {
		t.Run(fmt.Sprintf("%q", prefix), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPort(t, denied{memory.New(), prefix}, 20)
				cfg := p.config("a")
				cfg.Spread = spread
				f, err := fleet.New(p.store, "test", cfg)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), calm)
				defer cancel()
				err = f.Run(ctx, tenure.Lead(func(context.Context, *tenure.Term) error { return nil }))
				if !errors.Is(err, driver.ErrDenied) || ctx.Err() != nil {
					t.Errorf("Run returned %v; %v", err, ctx.Err())
				}
			})
		})
	}
}

// An election that ends by itself does not end the others.
func TestOneDeniedElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, denied{memory.New(), "shard-007"}, 20)
		cfg := p.config("a")
		f, err := fleet.New(p.store, "test", cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), calm)
		defer cancel()
		var led sync.Map
		err = f.Run(ctx, tenure.Lead(func(ctx context.Context, term *tenure.Term) error {
			led.Store(term.Election(), true)
			<-ctx.Done()
			return nil
		}))
		n := 0
		led.Range(func(any, any) bool { n++; return true })
		if !errors.Is(err, driver.ErrDenied) || ctx.Err() == nil || n != 19 {
			t.Errorf("Run returned %v; %v; %d were led", err, ctx.Err(), n)
		}
	})
}

func TestConfigsThatAreRefused(t *testing.T) {
	for what, change := range map[string]func(*fleet.Config){
		"twice":       func(c *fleet.Config) { c.Elections = []string{"x", "y", "x"} },
		"for seats":   func(c *fleet.Config) { c.Elections = []string{"test/members/3"} },
		"Members":     func(c *fleet.Config) { c.Members = 1025 },
		"HandOvers":   func(c *fleet.Config) { c.HandOvers = -1 },
		"Settle":      func(c *fleet.Config) { c.Settle = 2 * time.Hour },
		"Nominator":   func(c *fleet.Config) { c.Election.Nominator = nominator{} },
		"Priority":    func(c *fleet.Config) { c.Election.Priority = 1 },
		"NomineeOnly": func(c *fleet.Config) { c.Election.NomineeOnly = true },
		"Lease":       func(c *fleet.Config) { c.Presence = time.Millisecond },
		"Renew":       func(c *fleet.Config) { c.Election.Tuning.Renew = time.Hour },
		"name":        func(c *fleet.Config) { c.Elections = []string{""} },
	} {
		t.Run(what, func(t *testing.T) {
			cfg := fleet.Config{Election: tenure.Config{ID: "a"}, Elections: []string{"x"}, Spread: true}
			change(&cfg)
			_, err := fleet.New(memory.New(), "test", cfg)
			if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(what, "for ")) {
				t.Errorf("New returned %v", err)
			}
			if _, ok := errors.AsType[*tenure.ConfigError](err); !ok {
				t.Errorf("%v is no ConfigError", err)
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
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(newPort(t, memory.New(), 40), seed) })
		})
	}
}

func chaos(p *port, seed uint64) {
	dice := newDice(seed)
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
