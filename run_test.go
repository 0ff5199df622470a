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

func TestFirstOfAFreshStoreLeadsAtOnce(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		began := time.Now()
		a, term := elect(t, store, "a", nil)
		if took := time.Since(began); took > time.Millisecond {
			t.Errorf("elected after %v", took)
		}
		if term.Token() == 0 || term.Err() != nil || term.Remaining() <= 0 {
			t.Errorf("token %d, err %v, remaining %v", term.Token(), term.Err(), term.Remaining())
		}
		if err := a.end(t); err != nil {
			t.Errorf("Run returned %v", err)
		}
		if err := term.Err(); !errors.Is(err, tenure.ErrLost) || !errors.Is(err, tenure.ErrReleased) {
			t.Errorf("after the end Err is %v", err)
		}
	})
}

func TestSuccessorStartsAtOnceWhenTheLeaderStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		a, first := elect(t, store, "a", nil)
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(3 * lease)
		stopped := time.Now()
		a.stop()
		second := within(t, time.Minute, b.won, "second term")
		if took := time.Since(stopped); took > 10*time.Millisecond {
			t.Errorf("hand-over took %v", took)
		}
		if second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
	})
}

func TestCrashedLeaderIsReplacedAfterItsLeaseAndNotBefore(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		cut := faulty(t, store)
		_, first := elect(t, cut, "a", nil)
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(2 * lease)
		cut.Partition()
		died := time.Now()
		lost := within(t, lease, first.Context().Done(), "end of the hard context")
		_ = lost
		if err := context.Cause(first.Context()); !errors.Is(err, tenure.ErrExpired) {
			t.Errorf("the hard context ended with %v", err)
		}
		ended := time.Now()
		second := within(t, 3*lease, b.won, "second term")
		if time.Since(ended) <= 0 || first.Err() == nil {
			t.Errorf("the second term began %v after the first one's end; Err is %v", time.Since(ended), first.Err())
		}
		if took := time.Since(died); took > 2*lease+time.Second {
			t.Errorf("fail-over took %v", took)
		}
		if second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		cut.Heal()
	})
}

func TestLeadThatReturnsEndsRun(t *testing.T) {
	failure := errors.New("broken work")
	for _, want := range []error{nil, failure} {
		bubbles(t, func(t *testing.T, store operated) {
			e := mustNew(t, store, "a", nil)
			err := e.Run(t.Context(), func(context.Context, *tenure.Term) error { return want })
			if !errors.Is(err, want) || (want == nil) != (err == nil) {
				t.Errorf("Run returned %v, want %v", err, want)
			}
			s := e.Status()
			if s.State != tenure.StateIdle {
				t.Errorf("state %s", s.State)
			}
		})
	}
}

func TestDecliningReleasesBacksOffAndCampaignsAgain(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var at []time.Time
		e := mustNew(t, store, "a", func(c *tenure.Config) {
			c.Tuning.Backoff = func(n int) time.Duration { return time.Duration(n) * time.Hour }
		})
		err := e.Run(t.Context(), func(context.Context, *tenure.Term) error {
			if at = append(at, time.Now()); len(at) < 4 {
				return tenure.ErrDecline
			}
			return nil
		})
		if err != nil || len(at) != 4 {
			t.Fatalf("Run returned %v after %d terms", err, len(at))
		}
		for n := 1; n < 4; n++ {
			if gap := at[n].Sub(at[n-1]); gap < time.Duration(n)*time.Hour {
				t.Errorf("back-off %d was %v", n, gap)
			}
		}
	})
}

func TestHandOverGoesToTheNamedSuccessor(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, _ := elect(t, store, "a", nil)
		others := map[string]*running{}
		for _, id := range []string{"b", "c", "d", "e"} {
			others[id] = start(t, mustNew(t, store, id, nil), holdOn)
		}
		time.Sleep(2 * lease)
		handOver(t, others["b"].election, "d")
		within(t, 2*lease, others["d"].won, "term of d")
		s, err := a.election.Wait(t.Context(), func(s tenure.Status) bool { return s.Leader.ID == "d" })
		if err != nil || s.State != tenure.StateCandidate {
			t.Errorf("a is %s, %v", s.State, err)
		}
		for _, r := range others {
			r.stop()
		}
	})
}

func TestHandOverByTheLeaderItselfNamesItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		cause := make(chan error, 2)
		a := start(t, mustNew(t, store, "a", nil), func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil
		})
		within(t, time.Minute, a.won, "term")
		handOver(t, a.election, "")
		if err := within(t, time.Minute, cause, "cause"); !errors.Is(err, tenure.ErrHandOver) {
			t.Errorf("cause %v", err)
		}
		within(t, time.Minute, a.won, "another term: there is no other candidate")
		_ = a.end(t)
		if err := <-cause; !errors.Is(err, tenure.ErrShutdown) {
			t.Errorf("cause %v", err)
		}
	})
}

func TestHandOverWithoutALeader(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		if err := mustNew(t, store, "a", nil).HandOver(t.Context(), ""); !errors.Is(err, tenure.ErrNoLeader) {
			t.Errorf("HandOver returned %v", err)
		}
	})
}

func TestLeaseIsRenewedWhileTheWorkFinishes(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		finish := make(chan struct{})
		a := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.FinishWithin = 10 * lease }),
			func(ctx context.Context, term *tenure.Term) error {
				<-ctx.Done()
				<-finish
				return term.Err()
			})
		within(t, time.Minute, a.won, "term")
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		a.stop()
		select {
		case <-b.won:
			t.Fatal("b leads while a's work still runs")
		case <-time.After(5 * lease):
		}
		close(finish)
		within(t, lease, b.won, "term of b")
		if err := within(t, time.Minute, a.done, "end of a"); err != nil {
			t.Errorf("Run returned %v: the lease was not held to the end", err)
		}
	})
}

func TestOverdueWorkLosesTheLeaseAndIsReported(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var d diary
		finish := make(chan struct{})
		a := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.FinishWithin, c.OnEvent = time.Second, d.note }),
			func(context.Context, *tenure.Term) error { <-finish; return nil })
		term := within(t, time.Minute, a.won, "term")
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		a.stop()
		within(t, time.Minute, term.Context().Done(), "end of the hard context")
		if s := a.election.Status(); s.State != tenure.StateOverdue || !errors.Is(s.Health(), tenure.ErrOverdue) {
			t.Errorf("state %s, health %v", s.State, s.Health())
		}
		within(t, 3*lease, b.won, "term of b")
		close(finish)
		if err := within(t, time.Minute, a.done, "end of a"); err != nil {
			t.Errorf("Run returned %v", err)
		}
		if d.find(tenure.EventOverdue) == nil {
			t.Error("no overdue event")
		}
		if s := b.election.Status(); s.State != tenure.StateLeader {
			t.Errorf("b is %s after a's work came to its end", s.State)
		}
	})
}

func TestPanicEndsTheTermAndReleasesNothing(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		e := mustNew(t, store, "a", nil)
		var term *tenure.Term
		func() {
			defer func() {
				if recover() != "oh" {
					t.Error("the panic did not go on")
				}
			}()
			_ = e.Run(t.Context(), func(_ context.Context, t *tenure.Term) error { term = t; panic("oh") })
		}()
		if err := term.Err(); !errors.Is(err, tenure.ErrAbandoned) {
			t.Errorf("Err is %v", err)
		}
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		select {
		case <-b.won:
			t.Fatal("b leads though nothing was released")
		case <-time.After(lease - time.Second):
		}
		within(t, 2*lease, b.won, "term of b")
		if err := e.Run(t.Context(), holdOn); !errors.Is(err, tenure.ErrTermOpen) {
			t.Errorf("Run returned %v while the work may still run", err)
		}
	})
}

func TestGoexitEndsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mustNew(t, memory.New(), "a", nil)
		terms := make(chan *tenure.Term, 1)
		go func() {
			_ = e.Run(t.Context(), func(_ context.Context, term *tenure.Term) error {
				terms <- term
				runtime.Goexit()
				return nil
			})
		}()
		term := <-terms
		within(t, time.Minute, term.Context().Done(), "end of the term")
		if err := term.Err(); !errors.Is(err, tenure.ErrAbandoned) {
			t.Errorf("Err is %v", err)
		}
		synctest.Wait()
		_ = term.Resign(t.Context())
	})
}

func TestLostTermIsFollowedByANewOne(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a := start(t, mustNew(t, store, "a", nil), func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			return errors.New("whatever it says")
		})
		first := within(t, time.Minute, a.won, "term")
		store.Delete(key)
		within(t, lease, first.Context().Done(), "loss")
		if err := first.Err(); !errors.Is(err, tenure.ErrVanished) {
			t.Errorf("lost because %v", err)
		}
		second := within(t, 3*lease, a.won, "second term")
		if second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		if err := first.Err(); !errors.Is(err, tenure.ErrVanished) {
			t.Errorf("the first term's Err changed to %v", err)
		}
	})
}

func TestForeignBytesAreReportedAndNeverOverwritten(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var d diary
		store.Put(key, []byte("mine"))
		a := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.OnEvent = d.note }), holdOn)
		time.Sleep(10 * lease)
		if e := d.find(tenure.EventAlarm); e == nil || !errors.Is(e.Cause, tenure.ErrForeign) {
			t.Errorf("alarm %v", e)
		}
		if err := a.end(t); err != nil || len(a.won) > 0 {
			t.Errorf("Run returned %v, %d terms", err, len(a.won))
		}
		entry, _ := store.Read(t.Context(), key)
		if string(entry.Value) != "mine" {
			t.Errorf("the key holds %q", entry.Value)
		}
	})
}

func TestDeniedReadingEndsTheCampaign(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faults.New(store, 1, faults.Plan{Chances: faults.Chances{faults.Deny: 1}})
		e := mustNew(t, f, "a", nil)
		if err := e.Run(t.Context(), holdOn); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("Run returned %v", err)
		}
		for _, err := range e.Leaders(t.Context()) {
			if !errors.Is(err, driver.ErrDenied) {
				t.Errorf("Leaders yielded %v", err)
			}
		}
		if _, err := e.Wait(t.Context(), func(tenure.Status) bool { return false }); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("Wait returned %v", err)
		}
		f.Wait()
	})
}

func TestJoinNeedsNoGoroutineWhileFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		ctx, stop := context.WithCancel(context.Background())
		elect(t, store, "a", nil)
		const many = 1000 // the runtime counts goroutines that have just ended, in dozens
		var ends []<-chan error
		before := runtime.NumGoroutine()
		for range many {
			g := mustNewGroup(t, store, "b", nil)
			ends = append(ends, g.join(ctx, g.election(), tenure.Lead(holdOn)))
		}
		time.Sleep(2 * lease)
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > many/10 {
			t.Errorf("%d elections cost %d goroutines", many, more)
		}
		stop()
		for _, done := range ends {
			if err := within(t, time.Minute, done, "end"); err != nil {
				t.Errorf("it ended with %v", err)
			}
		}
	})
}

func TestRunWithAnEndedContextReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		a := start(t, mustNew(t, memory.New(), "a", nil), holdOn)
		a.stop()
		_ = a.end(t)
		done := make(chan error, 1)
		go func() { done <- a.election.Run(ctx, holdOn) }()
		if err := within(t, time.Minute, done, "end of Run"); err != nil {
			t.Errorf("Run returned %v", err)
		}
		if _, err := a.election.Campaign(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Campaign returned %v", err)
		}
	})
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

func TestWorkThatResignsEndsItsRunOnlyWhenItReturns(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		ctx, cancel := context.WithCancel(context.Background())
		g := mustNewGroup(t, store, "a", nil)
		e := g.election()
		failure := errors.New("broken work")
		finish := make(chan struct{})
		done := g.join(ctx, e, tenure.Lead(func(_ context.Context, term *tenure.Term) error {
			err := term.Resign(context.Background())
			<-finish
			return errors.Join(err, failure)
		}))
		synctest.Wait() // it has resigned
		elect(t, store, "b", nil)
		if err := e.Run(ctx, holdOn); !errors.Is(err, tenure.ErrRunning) || len(done) > 0 {
			t.Errorf("while the work runs another Run returned %v, and %d results were sent", err, len(done))
		}
		close(finish)
		if err := within(t, time.Minute, done, "end"); !errors.Is(err, failure) {
			t.Errorf("it ended with %v", err)
		}
		cancel()
	})
}

func TestReturningTheCauseOfTheContextIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		finish := make(chan struct{}, 1)
		a := start(t, mustNew(t, memory.New(), "a", func(c *tenure.Config) { c.OnEvent = d.note }),
			func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				<-finish
				return context.Cause(ctx)
			})
		handOver := func() {
			within(t, time.Minute, a.won, "term")
			handOver(t, a.election, "")
		}
		handOver()
		finish <- struct{}{}
		handOver()
		a.stop() // the work was asked to hand over before
		finish <- struct{}{}
		if err := a.end(t); err != nil {
			t.Errorf("Run returned %v", err)
		}
		if e := d.find(tenure.EventFailed); e != nil {
			t.Errorf("reported as a failure: %v", e.Cause)
		}
	})
}

func TestErrorOfResignedWorkIsReturnedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		failure := errors.New("boom")
		a := start(t, mustNew(t, memory.New(), "a", func(c *tenure.Config) { c.OnEvent = d.note }),
			func(_ context.Context, term *tenure.Term) error {
				_ = term.Resign(t.Context())
				return failure
			})
		if err := within(t, time.Minute, a.done, "end"); !errors.Is(err, failure) {
			t.Errorf("Run returned %v", err)
		}
		if e := d.find(tenure.EventFailed); e != nil {
			t.Errorf("an event reports it, too: %v", e.Cause)
		}
	})
}

func TestPanicInBackoffEndsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mustNew(t, memory.New(), "a", func(c *tenure.Config) { c.Tuning.Backoff = func(int) time.Duration { panic("oh") } })
		var term *tenure.Term
		func() {
			defer func() { _ = recover() }()
			_ = e.Run(t.Context(), func(_ context.Context, t *tenure.Term) error { term = t; return tenure.ErrDecline })
		}()
		if err := term.Err(); !errors.Is(err, tenure.ErrAbandoned) {
			t.Errorf("Err is %v", err)
		}
		_ = term.Resign(t.Context())
		if err := e.Run(t.Context(), func(context.Context, *tenure.Term) error { return nil }); err != nil {
			t.Errorf("another Run returned %v", err)
		}
	})
}

func TestJoinReportsGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := make(chan *tenure.Term, 1)
		g := mustNewGroup(t, memory.New(), "a", nil)
		done := g.join(t.Context(), g.election(), tenure.Lead(func(_ context.Context, term *tenure.Term) error {
			terms <- term
			runtime.Goexit()
			return nil
		}))
		if err := within(t, time.Minute, done, "end"); !errors.Is(err, tenure.ErrAbandoned) {
			t.Errorf("it ended with %v", err)
		}
		_ = (<-terms).Resign(t.Context())
	})
}

func TestWatchSetUpEndsWithItsElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faults.New(memory.New(), 1, faults.Plan{})
		f.Next(faults.Watch, faults.HangBefore)
		a, _ := elect(t, f, "a", func(c *tenure.Config) { c.Lease = time.Hour })
		_ = a.end(t)
		// The bubble fails the test if a goroutine still hangs for a renewal interval.
	})
}

// leaky goes on pushing after a watch was stopped.
type leaky struct {
	*memory.Polled
	see func(driver.Entry)
}

func (l *leaky) Watch(_ context.Context, _ string, see func(driver.Entry)) (func(), error) {
	l.see = see
	return func() {}, nil
}

func TestPushAfterRunIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		store := &leaky{Polled: memory.NewPolled()}
		a, _ := elect(t, store, "a", func(c *tenure.Config) { c.OnEvent = d.note })
		synctest.Wait()
		_ = a.end(t)
		before := len(d.events)
		elect(t, store.Polled, "b", nil)
		entry, err := store.Read(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		store.see(entry)
		synctest.Wait()
		if len(d.events) > before {
			t.Errorf("events after the end: %v", d.events[before:])
		}
	})
}
