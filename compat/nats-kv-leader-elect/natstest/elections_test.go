package natstest

import (
	"context"
	"errors"
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
	election "github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

func TestStartTwice(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		a := join(t, "a", store)
		a.mustLead(soon)
		if err := a.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "already running") {
			t.Errorf("a second Start at the same time: %v", err)
		}
		first := a.Token()
		a.Stop()
		a.ended()
		a.Stop()
		go func() { a.done <- a.Start(t.Context()) }()
		a.mustLead(soon)
		if a.Token() <= first {
			t.Errorf("tokens %d, then %d", first, a.Token())
		}
		a.Stop()
		a.ended()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Start(gone); err != nil {
			t.Errorf("Start with a context that has ended: %v", err)
		}
	})
}

// TestCallbackThatPanics: other goroutines of the program may still work, so the lease is not
// released.
func TestCallbackThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		e, err := election.New("a", "billing", nil, election.WithStore(store), election.WithLease(lease), election.WithoutSplay(),
			election.OnWon(func() { panic("at once") }))
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if got := recover(); got != "at once" {
					t.Errorf("recovered %v", got)
				}
			}()
			_ = e.Start(t.Context())
		}()
		b := join(t, "b", store)
		if took := b.mustLead(2 * lease); took < lease*8/10 {
			t.Errorf("another leads after %v", took)
		}
		if err := e.Start(t.Context()); !errors.Is(err, tenure.ErrRunning) {
			t.Errorf("Start once more: %v", err)
		}
	})
}

func TestSplay(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		const splay = 5 * time.Second
		var least, most time.Duration = time.Hour, 0
		for range 40 {
			begin := time.Now()
			a := draft(t, "a")
			e, err := election.New(a.name, "billing", nil, a.splayed(election.WithStore(store), election.WithLease(lease))...)
			if err != nil {
				t.Fatal(err)
			}
			a.begin(e).mustLead(splay + soon)
			took := time.Since(begin)
			least, most = min(least, took), max(most, took)
			a.Stop()
			a.ended()
		}
		if least > 2*time.Second || most < 3*time.Second || most > splay+100*time.Millisecond {
			t.Errorf("from %v to %v", least, most)
		}
	})
}

// TestDeniedStoreEndsStart: an error that only an operator can fix ends Start.
func TestDeniedStoreEndsStart(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		e, err := election.New("a", "billing", nil, election.WithStore(denying{store}), election.WithLease(lease), election.WithoutSplay())
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context()); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("got %v", err)
		}
	})
}

type denying struct{ driver.Store }

func (denying) Read(context.Context, string) (driver.Entry, error) {
	return driver.Entry{}, fmt.Errorf("%w: to read", driver.ErrDenied)
}

// TestOnCampaign: OnCampaign is called for each renewal, and for waiting candidates in the old
// interval.
func TestOnCampaign(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		counts := func() (*map[election.State]int, election.Option) {
			n := make(map[election.State]int)
			return &n, election.OnCampaign(func(s election.State) { n[s]++ })
		}
		ofA, countA := counts()
		a := join(t, "a", store, countA)
		a.mustLead(soon)
		ofB, countB := counts()
		join(t, "b", store, countB)
		time.Sleep(9 * lease)
		synctest.Wait()
		if n := (*ofA)[election.LeaderState]; n < 25 || n > 30 {
			t.Errorf("the leader campaigned %d times in 9 leases", n)
		}
		if n := (*ofB)[election.CandidateState]; n != 5 { // at the start, and every 2.25 leases
			t.Errorf("the candidate campaigned %d times in 9 leases", n)
		}
	})
}

// growing is a back-off that starts at a second and doubles. It keeps its arguments.
type growing struct {
	mu    sync.Mutex
	asked []int
}

func (g *growing) Duration(n int) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, n)
	return time.Second << min(n, 6)
}

// were returns its arguments since the last call of were.
func (g *growing) were() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.asked
	g.asked = nil
	return asked
}

// TestBackoffSlowsDown: the longer a candidate has waited, the less often it campaigns. After a
// term it starts again.
func TestBackoffSlowsDown(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		a := join(t, "a", store)
		a.mustLead(soon)
		g := &growing{}
		b := join(t, "b", store, election.WithBackoff(g))
		time.Sleep(100 * time.Second) // after 1, 3, 7, 15, 31, 63 s
		if got, want := g.were(), []int{0, 1, 2, 3, 4, 5, 6}; !slices.Equal(got, want) {
			t.Errorf("asked for %v, not %v", got, want)
		}
		a.line.Partition()
		took := b.mustLead(2 * time.Minute) // its next campaign is at 127 s
		if at := 27 * time.Second; took < at-time.Second || took > at+time.Second {
			t.Errorf("leads %v after the last one crashed, not %v", took, at)
		}
		g.were()
		store.Delete("billing")
		time.Sleep(lease)
		if asked := g.were(); len(asked) == 0 || asked[0] != 0 {
			t.Errorf("after a term it is asked for %v", asked)
		}
	})
}

// TestBackoffKeepsTheLeader: after an outage of the servers, the last leader leads first.
func TestBackoffKeepsTheLeader(t *testing.T) {
	slow := election.WithBackoff(election.UpTo(20 * time.Second))
	kept := 0
	const runs = 20
	for range runs {
		bubble(t, func(t *testing.T, store *memory.Store) {
			outage := faults.New(store, 1, faults.Plan{})
			a := join(t, "a", outage, slow)
			a.mustLead(soon)
			b, c := join(t, "b", outage, slow), join(t, "c", outage, slow)
			watchOver(t, a, b, c)
			time.Sleep(5 * time.Minute)
			outage.Partition()
			time.Sleep(25 * time.Second)
			outage.Heal()
			if leader, _ := leadsWithin(t, time.Minute, a, b, c); leader == a {
				kept++
			}
		})
	}
	t.Logf("in %d of %d outages the leader stayed", kept, runs)
	if kept < runs*8/10 {
		t.Errorf("in %d of %d outages another took over", runs-kept, runs)
	}
}

// TestBackoffHandsOverAtOnce: after a release, no candidate backs off.
func TestBackoffHandsOverAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		slow := election.WithBackoff(every(time.Hour))
		a := join(t, "a", store, slow)
		a.mustLead(soon)
		b := join(t, "b", store, slow)
		time.Sleep(lease)
		a.Stop()
		if took := b.mustLead(soon); took > 20*time.Millisecond {
			t.Errorf("took %v", took)
		}
		// As nats kv del does. b then releases a record that is gone, and leads again.
		store.Delete("billing")
		time.Sleep(time.Millisecond)
		if took := b.mustLead(soon); took > 600*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestUpToGrowsToItsLimit(t *testing.T) {
	for _, c := range []struct {
		n    int
		want time.Duration
	}{{0, 500 * time.Millisecond}, {1, time.Second}, {8, 4500 * time.Millisecond}, {9, 5 * time.Second}, {1000, 5 * time.Second}} {
		least, most := time.Hour, time.Duration(0)
		for range 1000 {
			d := election.UpTo(5 * time.Second).Duration(c.n)
			least, most = min(least, d), max(most, d)
		}
		if least < c.want*3/4 || least > c.want*8/10 || most > c.want*5/4 || most < c.want*12/10 {
			t.Errorf("wait %d is from %v to %v", c.n, least, most)
		}
	}
}

// Each test of this file shows that a fault of nats-kv-leader-elect does not occur here.

// TestHungUpdateEndsLeadership: in nats-kv-leader-elect a leader whose Update got no answer led on
// beside the next one.
func TestHungUpdateEndsLeadership(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		a := join(t, "a", store)
		a.mustLead(soon)
		b := join(t, "b", store)
		watchOver(t, a, b)
		a.calls()
		a.line.Partition()
		cut := time.Now()
		for a.IsLeader() {
			time.Sleep(time.Millisecond)
		}
		led := time.Since(cut)
		synctest.Wait()
		if a.State() != election.CandidateState || a.Token() != 0 {
			t.Errorf("after %v: state %v, token %d", led, a.State(), a.Token())
		}
		a.expect("lost", "candidate")
		took := b.mustLead(lease)
		t.Log("led on for", led, "and the next one began", took, "later")
		if led > lease-lease/10 || took < lease/10 {
			t.Errorf("led on for %v, and the next one began only %v later", led, took)
		}
	})
}

// TestStopWorks: in nats-kv-leader-elect Stop never returned.
func TestStopWorks(t *testing.T) {
	for _, from := range []string{"outside", "candidate", "won", "leader", "lost"} {
		t.Run("from "+from, func(t *testing.T) {
			bubble(t, func(t *testing.T, store *memory.Store) {
				a := joinAnd(t, "a", store, func(p *play, what string) {
					if what == from {
						p.Stop()
						p.Stop()
					}
				})
				time.Sleep(lease)
				switch from {
				case "outside":
					a.Stop()
				case "lost":
					a.stop()
				}
				a.ended()
				if calls := a.calls(); slices.Contains(calls, "won") && calls[len(calls)-1] != "lost" {
					t.Errorf("called %v", calls)
				}
			})
		})
	}
}

// TestMethodsWorkWithinCallbacks: in nats-kv-leader-elect each of them waited forever for a lock.
func TestMethodsWorkWithinCallbacks(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		seen := make(map[string]string)
		a := joinAnd(t, "a", store, func(p *play, what string) {
			seen[what] = fmt.Sprint(p.IsLeader(), p.State(), p.Token() != 0, p.Term() != nil)
		})
		time.Sleep(lease)
		a.Stop()
		a.ended()
		for what, want := range map[string]string{
			"candidate": "false candidate false false", "won": "true leader true true", "leader": "true leader true true",
			// It may still clean up: the lease is kept until it returns.
			"lost": "false candidate true true",
		} {
			if seen[what] != want {
				t.Errorf("%s: %q, not %q", what, seen[what], want)
			}
		}
	})
}

// TestShutdownCallsOnLostAndReleases: in nats-kv-leader-elect OnLost was not called, and the key
// kept the others waiting.
func TestShutdownCallsOnLostAndReleases(t *testing.T) {
	for name, end := range map[string]func(*play){
		"Stop": func(p *play) { p.Stop() }, "the context": func(p *play) { p.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, store *memory.Store) {
				a := join(t, "a", store)
				a.mustLead(soon)
				b := join(t, "b", store)
				watchOver(t, a, b)
				a.calls()
				begin := time.Now()
				a.then(func(what string) {
					if what == "lost" {
						time.Sleep(3 * time.Second) // work that ends
						if b.IsLeader() {
							t.Error("another leads before election.OnLost has returned")
						}
					}
				})
				end(a)
				a.ended()
				a.expect("lost")
				b.mustLead(100 * time.Millisecond)
				if took := time.Since(begin); took > 3*time.Second+100*time.Millisecond {
					t.Errorf("the next one leads %v later", took)
				}
			})
		})
	}
}

// TestErrorsAreReported: nats-kv-leader-elect ignored all of them.
func TestErrorsAreReported(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		var lines atomic.Int64
		a := join(t, "a", store, election.WithDebug(func(string, ...any) { lines.Add(1) }))
		a.mustLead(soon)
		before := lines.Load()
		a.line.Partition()
		time.Sleep(2 * lease)
		all := errors.Join(a.errors()...)
		if !errors.Is(all, tenure.ErrExpired) || lines.Load() == before {
			t.Errorf("reported %v, and %d lines", all, lines.Load()-before)
		}
		a.line.Heal()
		a.mustLead(2 * lease)
		store.Put("billing", []byte("something else"))
		time.Sleep(lease)
		if all := errors.Join(a.errors()...); !errors.Is(all, &tenure.StoreError{Kind: driver.Foreign}) {
			t.Errorf("of a value that is no record: %v", all)
		}
	})
}

// every is a back-off that is always the same.
type every time.Duration

func (e every) Duration(int) time.Duration { return time.Duration(e) }

// TestSlowCallbackCostsNothing: in nats-kv-leader-elect it delayed the update of the key.
func TestSlowCallbackCostsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		a := joinAnd(t, "a", store, func(_ *play, what string) {
			if what == "won" {
				time.Sleep(10 * lease)
			}
		})
		b := join(t, "b", store)
		time.Sleep(9 * lease)
		if !a.IsLeader() || b.IsLeader() {
			t.Error("the callback has cost the lease")
		}
		a.Stop()
		a.ended()
		b.mustLead(lease)
	})
}

// TestFrozenProcess: in nats-kv-leader-elect IsLeader was right only after the next Update had
// failed. A process that was stopped for long reported that it leads.
func TestFrozenProcess(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		frozen := &stopped{Clock: clock.Standard{}}
		a := join(t, "a", store, election.Configure(func(c *tenure.Config) { c.Clock = frozen }))
		a.mustLead(soon)
		a.line.Partition() // otherwise it leads again at once, in a new term
		frozen.jump(lease)
		if a.IsLeader() || a.State() == election.LeaderState || a.Token() != 0 {
			t.Error("leads when it has just woken up after the lease")
		}
	})
}

// stopped is the clock of a process that did not run for a while.
type stopped struct {
	clock.Clock
	missed atomic.Int64
}

func (s *stopped) jump(d time.Duration) { s.missed.Add(int64(d)) }

func (s *stopped) Now() clock.Reading {
	r, d := s.Clock.Now(), time.Duration(s.missed.Load())
	r.Mono, r.Raw, r.Boot = r.Mono+d, r.Raw+d, r.Boot+d
	return r
}

// TestZeroBackoff: in nats-kv-leader-elect a wait of 0 ended the process.
func TestZeroBackoff(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		a := join(t, "a", store)
		a.mustLead(soon)
		b := join(t, "b", store, election.WithBackoff(every(0)))
		time.Sleep(lease)
		a.line.Partition()
		b.mustLead(2 * lease)
	})
}

// TestDebugLines: in nats-kv-leader-elect the name was part of the format.
func TestDebugLines(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		var lines []string
		e, err := election.New("100 %s", "billing", nil, election.WithStore(store), election.WithLease(lease), election.WithDebug(func(format string, a ...any) {
			lines = append(lines, fmt.Sprintf(format, a...))
		}))
		if err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], "100 %s @ .billing: ") {
			t.Errorf("%v, %q, %v", e, lines, err)
		}
	})
}
