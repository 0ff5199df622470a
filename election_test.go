package tenure_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

func TestCampaign(t *testing.T) {
	scenes{
		"Term returns the open term": func(s *scene) {
			e := s.new("a")
			is := func(want *tenure.Term, when string) {
				s.Helper()
				if got, ok := e.Term(); got != want || ok != (want != nil) {
					s.Errorf("%s: the open term is %p, %v, want %p", when, got, ok, want)
				}
			}
			is(nil, "before the first term")
			term := e.campaign()
			is(term, "in a term")
			s.resign(term)
			is(nil, "after the term")
		},
		"terms are resigned, and only once": func(s *scene) {
			e := s.new("a")
			term := e.campaign()
			time.Sleep(10 * lease)
			s.holds(term)
			_, err := e.Campaign(s.Context())
			s.is("a second Campaign", err, tenure.ErrRunning)
			if got, ok := tenure.FromContext(term.LeaseContext()); got != term || !ok {
				s.Error("the term is not in its own context")
			}
			s.resign(term)
			s.resign(term)
			again := e.campaign()
			s.follows(again, term)
			s.resign(term)
			s.holds(again)
			s.resign(again)
		},
		"a term outlives the context of its campaign": func(s *scene) {
			ctx, cancel := context.WithCancel(context.Background())
			term, err := s.new("a").Campaign(ctx)
			s.is("Campaign", err, nil)
			cancel()
			time.Sleep(3 * lease)
			s.holds(term)
			s.resign(term)
		},
		"a lost term stays open until it is resigned": func(s *scene) {
			e := s.new("a")
			term := e.campaign()
			s.store.Delete(key)
			s.ended(term, 2*lease, damage(driver.Deleted))
			_, err := e.Campaign(s.Context())
			s.is("Campaign", err, tenure.ErrRunning)
			_ = term.Resign(s.Context())
			again := e.campaign()
			s.follows(again, term)
			s.resign(again)
		},
		"a second Run is refused": func(s *scene) {
			a, _ := s.elect("a")
			s.is("Run", a.Run(s.Context(), holdOn), tenure.ErrRunning)
			_, err := a.Campaign(s.Context())
			s.is("Campaign", err, tenure.ErrRunning)
		},
		"Do refuses when too little of the lease is left": func(s *scene) {
			f, far := s.faulty()
			term := far.new("a").campaign()
			called := 0
			do := func(within time.Duration, want error) {
				s.Helper()
				s.is("Do", term.Do(s.Context(), within, func(ctx context.Context) error {
					called++
					<-ctx.Done()
					return context.Cause(ctx)
				}), want)
			}
			do(lease, tenure.ErrTooLate)
			f.Partition()
			do(lease/2, tenure.ErrExpired)
			do(0, tenure.ErrLost)
			if called != 1 {
				s.Errorf("the work was called %d times", called)
			}
			f.Heal()
			_ = term.Resign(s.Context())
		},
		"grace delays the announcement and not the lease": func(s *scene) {
			a := s.run("a", grace(10*time.Second))
			synctest.Wait()
			b := s.run("b")
			a.leadsAfter(10*time.Second, time.Minute)
			b.idles(0)
		},
		"metadata is copied in and out": func(s *scene) {
			given := map[string]string{"zone": "1"}
			e := s.new("a", func(c *tenure.Config) { c.Metadata = given })
			term := e.campaign()
			given["zone"] = "2"
			e.Status().Leader.Metadata["zone"] = "3"
			time.Sleep(lease) // with -race: renewals encode it during this time
			if zone := e.Status().Leader.Metadata["zone"]; zone != "1" {
				s.Errorf("zone %s", zone)
			}
			s.resign(term)
		},
		"Resign reports an earlier release with any context": func(s *scene) {
			term := s.new("a").campaign()
			s.resign(term)
			ended, cancel := context.WithCancel(s.Context())
			cancel()
			for range 50 {
				s.is("Resign", term.Resign(ended), nil)
			}
		},
	}.play(t)
}

func TestObservers(t *testing.T) {
	scenes{
		"Watch reports each change and vacancy": func(s *scene) {
			seen := make(chan string, 100)
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan struct{})
			observer := s.new("observer")
			go func() {
				defer close(ended)
				last := "unknown"
				for status, err := range observer.Watch(ctx) {
					s.is("Watch", err, nil)
					if now := status.Leader.ID; now != last || !status.Known || status.Election != key {
						seen <- now
						last = now
					}
				}
			}()
			expect := func(want string) {
				s.Helper()
				if got := within(s.T, 3*lease, seen, "leader"); got != want {
					s.Errorf("leader %q, want %q", got, want)
				}
			}
			expect("")
			a := s.run("a")
			expect("a")
			time.Sleep(3 * lease)
			_ = a.end()
			expect("")
			stop()
			within(s.T, time.Minute, ended, "end of Watch")
		},
		"a crashed leader is noticed": func(s *scene) {
			f, far := s.faulty()
			far.elect("a")
			o := s.new("observer")
			o.sees("a")
			f.Partition()
			died := time.Now()
			o.sees("")
			if took := time.Since(died); took > 2*lease {
				s.Errorf("it took %v", took)
			}
		},
		"Wait ends with its context, even if a read hangs": func(s *scene) {
			for _, fault := range []faults.Fault{faults.None, faults.HangBefore} {
				f, far := s.faulty()
				f.Next(faults.Read, fault)
				ctx, cancel := context.WithTimeout(s.Context(), time.Hour)
				_, err := far.new("a").Wait(ctx, func(tenure.Status) bool { return false })
				cancel()
				s.is("Wait", err, context.DeadlineExceeded)
			}
		},
		"a new observer reads again after a refusal": func(s *scene) {
			f, far := s.faulty()
			f.Next(faults.Read, faults.Deny)
			e := far.new("a")
			for _, err := range e.Watch(s.Context()) {
				s.is("Watch", err, driver.ErrDenied)
				time.Sleep(time.Minute) // an operator acts, and this observer is still there
				e.sees("")
			}
		},
		"an idle observer reads again": func(s *scene) {
			a, _ := s.elect("a")
			o := s.new("o")
			o.sees("a")
			_ = a.end()
			s.elect("b")
			time.Sleep(time.Hour)
			if got := o.waits(func(s tenure.Status) bool { return s.Leader.Exists() }); got.Leader.ID != "b" {
				s.Errorf("b leads; Wait says %q", got.Leader.ID)
			}
		},
		"an idle election reports no false vacancy": func(s *scene) {
			s.elect("a")
			o := s.new("o")
			for range 3 {
				o.sees("a")
				time.Sleep(10 * lease)
				if l := o.Status().Leader; l.ID != "a" {
					s.Errorf("leader %q", l.ID)
				}
			}
			if seen := o.all(tenure.EventLeader); len(seen) != 1 || seen[0].Leader.ID != "a" {
				s.Errorf("leaders %+v", seen)
			}
		},
		"it sees changed metadata": func(s *scene) { // the term and the address stay the same
			zone := func(z string) set { return func(c *tenure.Config) { c.Metadata = map[string]string{"zone": z} } }
			a, _ := s.elect("a", zone("east"))
			o := s.new("o")
			defer o.observe()()
			for _, z := range []string{"east", "west", "east"} {
				a.reconfigure(zone(z))
				time.Sleep(3 * lease)
				if got := o.Status().Leader.Metadata["zone"]; got != z {
					s.Errorf("the leader's zone is %q, want %q", got, z)
				}
			}
		},
		// The time of the last renewal is for people: a record that nobody holds has none.
		"the record shows when it was renewed": func(s *scene) {
			a, _ := s.elect("a")
			won := time.Now()
			o := s.new("o")
			defer o.observe()()
			time.Sleep(2 * lease)
			if got := o.Status().Record.Updated; got.Sub(won) < lease/2 || time.Since(got) > lease {
				s.Errorf("elected at %v, renewed at %v, now it is %v", won, got, time.Now())
			}
			_ = a.end()
			time.Sleep(2 * lease)
			if r := o.Status().Record; !r.Updated.IsZero() {
				s.Errorf("after the release: %+v", r)
			}
		},
	}.play(t)
}

func TestEvents(t *testing.T) {
	scenes{
		"they come in order": func(s *scene) {
			a, _ := s.elect("a")
			synctest.Wait()
			_ = a.end()
			var got []string
			for _, e := range a.events {
				got = append(got, string(e.Kind))
			}
			want := "candidate elected leader leaving released leader"
			if got := strings.Join(got, " "); got != want && got != "candidate elected leader leaving leader released" {
				s.Errorf("events %q, want %q", got, want)
			}
		},
		"Goexit in OnEvent costs one event": func(s *scene) {
			var d diary
			a, _ := s.elect("a", onEvent(func(e tenure.Event) {
				if e.Kind == tenure.EventCandidate {
					runtime.Goexit()
				}
				d.note(e)
			}))
			_ = a.end()
			if d.find(tenure.EventElected) == nil || d.find(tenure.EventReleased) == nil {
				s.Errorf("only these events were reported: %v", d.events)
			}
		},
	}.play(t, watched)
}

func TestSlowOnEventCostsNoLease(t *testing.T) {
	play(t, func(s *scene) {
		stuck := make(chan struct{})
		a, term := s.elect("a", onEvent(func(tenure.Event) { <-stuck }))
		time.Sleep(10 * lease)
		s.holds(term)
		s.is("Run", a.end(), nil)
		close(stuck)
	}, watched)
}

func TestEventAsJSON(t *testing.T) {
	e := tenure.Event{
		Time: time.Date(2030, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600)), Kind: tenure.EventLost, Election: "job", ID: "a",
		Term: 7, Cause: tenure.ErrExpired,
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"time":"2030-01-02T02:04:05.000000006Z","event":"lost","election":"job","id":"a","term":7,` +
		`"cause":"lease ran out before a renewal was confirmed","reason":"expired"}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

// tripped is a clock that calls a function at the first reading after it was armed.
type tripped struct {
	clock.Clock
	armed atomic.Bool
	trip  func()
}

func (c *tripped) Now() clock.Reading {
	if c.armed.Swap(false) {
		c.trip()
	}
	return c.Clock.Now()
}

func TestContextThatEndsDuringAClaimDoesNotEndTheTerm(t *testing.T) {
	play(t, func(s *scene) {
		terms := 0
		for range 100 {
			ctx, cancel := context.WithCancel(context.Background())
			clock := &tripped{Clock: clock.Standard{}, trip: cancel}
			armed := &hooked{Store: memory.NewPolled(), wrote: func(string) { clock.armed.Store(true) }}
			term, err := s.over(armed).new("a", withClock(clock)).Campaign(ctx)
			if err != nil {
				continue // also correct
			}
			terms++
			s.holds(term)
			s.resign(term)
		}
		if terms == 0 {
			s.Error("Campaign returned no term in any round")
		}
	}, polled)
}

// BenchmarkErr measures the check whether a term is still valid.
func BenchmarkErr(b *testing.B) {
	e, err := tenure.New(memory.New(), key, tenure.Config{})
	if err != nil {
		b.Fatal(err)
	}
	term, err := e.Campaign(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if term.Err() != nil {
			b.Fatal(term.Err())
		}
	}
	_ = term.Resign(b.Context())
}
