package tenure_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

var errBroken = errors.New("broken work")

func TestRun(t *testing.T) {
	scenes{
		"the first of a fresh store leads at once": func(s *scene) {
			a := s.run("a")
			term := a.leads(time.Millisecond)
			s.holds(term)
			if term.Token() == 0 || term.Remaining() <= 0 {
				s.Errorf("token %d, remaining %v", term.Token(), term.Remaining())
			}
			s.is("Run", a.end(), nil)
			s.ended(term, atOnce, tenure.ErrReleased)
		},
		"lead that returns ends Run": func(s *scene) {
			for _, want := range []error{nil, errBroken} {
				e := s.new("a")
				s.is("Run", e.Run(s.Context(), returns(want)), want)
				e.state(tenure.StateIdle)
			}
		},
		"declining releases, backs off and campaigns again": func(s *scene) {
			var at []time.Time
			err := s.new("a", patientAfterDecline).Run(s.Context(), func(context.Context, *tenure.Term) error {
				if at = append(at, time.Now()); len(at) < 4 {
					return tenure.ErrDecline
				}
				return nil
			})
			if err != nil || len(at) != 4 {
				s.Fatalf("Run returned %v after %d terms", err, len(at))
			}
			for n := 1; n < 4; n++ {
				if gap := at[n].Sub(at[n-1]); gap < time.Duration(n)*time.Hour {
					s.Errorf("back-off %d was %v", n, gap)
				}
			}
		},
		"the lease is renewed while the work finishes": func(s *scene) {
			a := s.new("a", finishWithin(10*lease)).start(s.takes(5 * lease))
			a.leads()
			b := s.run("b")
			a.stop()
			b.idles(5*lease - 1)
			b.leads(lease)
			s.is("Run", a.result(), nil)
		},
		"foreign bytes are reported": func(s *scene) {
			s.put("mine")
			a := s.run("a")
			a.idles(10 * lease)
			a.reports(tenure.EventAlarm, damage(driver.Foreign))
			s.is("Run", a.end(), nil)
		},
		"denied reading ends it": func(s *scene) {
			_, far := s.faulty(faults.Plan{Chances: faults.Chances{faults.Deny: 1}})
			e := far.new("a")
			s.is("Run", e.Run(s.Context(), holdOn), driver.ErrDenied)
			for _, err := range e.Watch(s.Context()) {
				s.is("Watch", err, driver.ErrDenied)
			}
			_, err := e.Wait(s.Context(), func(tenure.Status) bool { return false })
			s.is("Wait", err, driver.ErrDenied)
		},
		"an ended context ends it": func(s *scene) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			e := s.new("a")
			s.is("Run", e.Run(ctx, holdOn), nil)
			_, err := e.Campaign(ctx)
			s.is("Campaign", err, context.Canceled)
		},
		"work that resigns ends its Run only when it returns": func(s *scene) {
			finish := make(chan struct{})
			g := s.group("a")
			a := g.join(g.new(), tenure.Lead(func(_ context.Context, term *tenure.Term) error {
				err := term.Resign(context.Background())
				<-finish
				return errors.Join(err, errBroken)
			}))
			synctest.Wait() // it has resigned
			s.elect("b")
			s.is("another Run", a.Run(s.Context(), holdOn), tenure.ErrRunning)
			if len(a.done) > 0 {
				s.Error("a result was sent while the work runs")
			}
			close(finish)
			s.is("the end", a.result(), errBroken)
		},
		"the error of work that resigned is returned and no event": func(s *scene) {
			a := s.new("a").start(func(_ context.Context, term *tenure.Term) error {
				_ = term.Resign(s.Context())
				return errBroken
			})
			s.is("Run", a.result(), errBroken)
			a.hides(tenure.EventFailed)
		},
		"returning the cause of the context is no error": func(s *scene) {
			finish := make(chan struct{}, 1)
			a := s.new("a").start(func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				<-finish
				return context.Cause(ctx)
			})
			for range 2 {
				a.leads()
				a.handOver("")
				finish <- struct{}{}
			}
			a.stop() // the work was asked to hand over before
			s.is("Run", a.result(), nil)
			a.hides(tenure.EventFailed)
		},
		"the set-up of a watch ends with its election": func(s *scene) {
			f, far := s.faulty()
			f.Next(faults.Watch, faults.HangBefore)
			a, _ := far.elect("a", leaseOf(time.Hour))
			_ = a.end()
			// The bubble fails the test if a goroutine still hangs for a renewal interval.
		},
		"a push after Run is ignored": func(s *scene) {
			var see func(driver.Entry)
			a, _ := s.over(&hooked{Store: s.store, watch: func(_ context.Context, _ string, to func(driver.Entry)) (func(), error) {
				see = to
				return func() {}, nil
			}}).elect("a")
			synctest.Wait()
			_ = a.end()
			before := len(a.events)
			s.elect("b")
			see(s.read())
			synctest.Wait()
			if len(a.events) > before {
				s.Errorf("events after the end: %v", a.events[before:])
			}
		},
	}.play(t)
}

// Work that ends by a panic or Goexit may still run in other goroutines, so nothing is released.
func TestAbandonedWork(t *testing.T) {
	lead := func(e *process, lead tenure.Lead) (term *tenure.Term) {
		defer func() {
			if p := recover(); p != nil && p != "oh" {
				panic(p)
			}
		}()
		_ = e.Run(e.s.Context(), func(ctx context.Context, t *tenure.Term) error {
			term = t
			return lead(ctx, t)
		})
		panic("Run returned")
	}
	scenes{
		"a panic goes on, and ends the term": func(s *scene) {
			e := s.new("a")
			term := lead(e, func(context.Context, *tenure.Term) error { panic("oh") })
			s.ended(term, atOnce, tenure.ErrAbandoned)
			b := s.run("b")
			b.idles(lease - time.Second)
			b.leads(2 * lease)
			s.is("Run while the work may run", e.Run(s.Context(), holdOn), tenure.ErrRunning)
		},
		"so does one in Backoff": func(s *scene) {
			e := s.new("a", func(c *tenure.Config) { c.Tuning.Backoff = func(int) time.Duration { panic("oh") } })
			term := lead(e, returns(tenure.ErrDecline))
			s.ended(term, atOnce, tenure.ErrAbandoned)
			_ = term.Resign(s.Context())
			s.is("another Run", e.Run(s.Context(), returns(nil)), nil)
		},
		"Goexit ends the term": func(s *scene) {
			terms := make(chan *tenure.Term, 1)
			go lead(s.new("a"), func(_ context.Context, term *tenure.Term) error {
				terms <- term
				runtime.Goexit()
				return nil
			})
			s.ended(<-terms, time.Minute, tenure.ErrAbandoned)
		},
		"Goexit is the result of Join": func(s *scene) {
			g := s.group("a")
			a := g.join(g.new(), tenure.Lead(func(context.Context, *tenure.Term) error {
				runtime.Goexit()
				return nil
			}))
			s.is("the end", a.result(), tenure.ErrAbandoned)
			term, _ := a.Term()
			_ = term.Resign(s.Context())
		},
		"Goexit in stop releases nothing": func(s *scene) {
			g := s.group("a")
			a := g.join(g.new(), exiting{})
			time.Sleep(lease)
			s.is("the end", a.end(), tenure.ErrAbandoned)
			b := s.run("b")
			b.idles(lease - time.Second)
			b.leads(2 * lease)
		},
	}.play(t)
}

// exiting is work whose stop ends its goroutine.
type exiting struct{}

func (exiting) Elected(context.Context, *tenure.Term) (stop func(context.Context) error, err error) {
	return func(context.Context) error { runtime.Goexit(); return nil }, nil
}

func TestSuccessorStartsAtOnceWhenTheLeaderStops(t *testing.T) {
	play(t, func(s *scene) {
		a, first := s.elect("a")
		b := s.run("b")
		time.Sleep(3 * lease)
		a.stop()
		s.follows(b.leads(10*time.Millisecond), first)
	}, watched)
}

// A free lease is not claimed for a context that has ended, even if the candidate notices the end
// late.
func TestCampaignWithAnEndedContextClaimsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 300 {
		store := memory.NewPolled()
		e, err := tenure.New(store, key, tenure.Config{ID: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Campaign(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("Campaign returned %v", err)
		}
		if entry, err := store.Read(t.Context(), key); err != nil || !entry.Absent() {
			t.Fatalf("the store holds %q, %v", entry.Value, err)
		}
	}
}

func TestEndOfAnOldContextAffectsNoLaterCampaign(t *testing.T) {
	for range 300 {
		e, err := tenure.New(memory.NewPolled(), key, tenure.Config{ID: "a"})
		if err != nil {
			t.Fatal(err)
		}
		old, end := context.WithCancel(context.Background())
		_ = e.Run(old, func(context.Context, *tenure.Term) error { go end(); return nil })
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		term, err := e.Campaign(ctx)
		cancel()
		if term == nil && err == nil {
			t.Fatal("Campaign returned neither a term nor an error")
		}
	}
}
