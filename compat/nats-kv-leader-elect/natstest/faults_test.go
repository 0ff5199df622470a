package natstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// TestLostAnswers: in nats-kv-leader-elect, a candidate that lost the answer to an applied write
// took its own key for another's.
func TestLostAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		p := draft(t, "a")
		p.line = faults.New(store, 1, faults.Plan{})
		p.line.Next(faults.Write, faults.LoseAnswer, faults.None, faults.LoseAnswer, faults.None, faults.None, faults.LoseAnswer)
		e, err := election.NewElection("a", "billing", nil, p.options(election.WithStore(p.line), election.WithLease(lease))...)
		if err != nil {
			t.Fatal(err)
		}
		a := p.begin(e)
		a.mustLead(lease / 2)
		token := a.Token()
		time.Sleep(10 * lease)
		if a.Token() != token {
			t.Errorf("token %d, then %d", token, a.Token())
		}
		a.expect("candidate", "won", "leader")
		if struck := len(p.line.Log()); struck < 3 {
			t.Errorf("only %d answers were lost", struck)
		}
	})
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

// TestBackoffKeepsTheGrace: in nats-kv-leader-elect a back-off below 75 % of the TTL removed the
// documented grace. Then OnWon was called for the next leader before the last one noticed its loss.
func TestBackoffKeepsTheGrace(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		often := election.WithBackoff(every(20 * time.Millisecond))
		a := join(t, "a", store, often)
		a.mustLead(soon)
		b, c := join(t, "b", store, often), join(t, "c", store, often)
		watchOver(t, a, b, c)
		for range 3 {
			leader, _ := leadsWithin(t, 3*lease, a, b, c)
			leader.line.Partition()
			time.Sleep(3 * lease)
			leader.line.Heal()
			store.Delete("billing")
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
