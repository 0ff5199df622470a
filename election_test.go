package tenure_test

import (
	"context"
	"encoding/json"
	"errors"
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

func TestTermReturnsTheOpenTerm(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		e := mustNew(t, store, "a", nil)
		is := func(want *tenure.Term, when string) {
			t.Helper()
			if got, ok := e.Term(); got != want || ok != (want != nil) {
				t.Errorf("%s: the open term is %p, %v, want %p", when, got, ok, want)
			}
		}
		is(nil, "before the first term")
		term := campaign(t, e)
		is(term, "in a term")
		if err := term.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		is(nil, "after the term")
	})
}

func TestCampaignAndResign(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		e := mustNew(t, store, "a", nil)
		term := campaign(t, e)
		time.Sleep(10 * lease)
		if err := term.Err(); err != nil {
			t.Errorf("after ten leases Err is %v", err)
		}
		if _, err := e.Campaign(t.Context()); !errors.Is(err, tenure.ErrTermOpen) {
			t.Errorf("a second Campaign returned %v", err)
		}
		if got, ok := tenure.FromContext(term.Context()); got != term || !ok {
			t.Error("the term is not in its own context")
		}
		for range 2 {
			if err := term.Resign(t.Context()); err != nil {
				t.Errorf("Resign returned %v", err)
			}
		}
		again, err := e.Campaign(t.Context())
		if err != nil || again.Token() <= term.Token() {
			t.Fatalf("token %d after %d, %v", again.Token(), term.Token(), err)
		}
		if err := term.Resign(t.Context()); err != nil || again.Err() != nil {
			t.Errorf("resigning an old term returned %v; the new one's Err is %v", err, again.Err())
		}
		_ = again.Resign(t.Context())
	})
}

func TestTermOutlivesTheContextOfItsCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		term, err := mustNew(t, memory.New(), "a", nil).Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(3 * lease)
		if term.Err() != nil || term.Soft().Err() != nil {
			t.Errorf("Err %v, soft context %v", term.Err(), term.Soft().Err())
		}
		_ = term.Resign(context.Background())
	})
}

func TestLostTermStaysOpenUntilResigned(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		e := mustNew(t, store, "a", nil)
		term := campaign(t, e)
		store.Delete(key)
		within(t, 2*lease, term.Context().Done(), "loss")
		if _, err := e.Campaign(t.Context()); !errors.Is(err, tenure.ErrTermOpen) {
			t.Errorf("Campaign returned %v", err)
		}
		_ = term.Resign(t.Context())
		again, err := e.Campaign(t.Context())
		if err != nil || again.Token() <= term.Token() {
			t.Errorf("token %d after %d, %v", again.Token(), term.Token(), err)
		}
		_ = again.Resign(t.Context())
	})
}

func TestSecondRunIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := elect(t, memory.New(), "a", nil)
		if err := a.election.Run(t.Context(), holdOn); !errors.Is(err, tenure.ErrRunning) {
			t.Errorf("Run returned %v", err)
		}
		if _, err := a.election.Campaign(t.Context()); !errors.Is(err, tenure.ErrRunning) {
			t.Errorf("Campaign returned %v", err)
		}
	})
}

func TestCanceledCampaignReleasesAClaimWithALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled() // with pushes the claim would be seen at once
		f := faulty(t, store)
		f.Next(faults.Write, faults.LoseAnswer)
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			time.Sleep(time.Millisecond) // the claim is in the store, its answer has not arrived
			cancel()
		}()
		patient := func(c *tenure.Config) { c.Tuning.Retry = []time.Duration{time.Second} }
		term, err := mustNew(t, f, "a", patient).Campaign(ctx)
		if term != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("Campaign returned %v, %v", term, err)
		}
		began := time.Now()
		elect(t, store, "b", nil)
		if took := time.Since(began); took > time.Second {
			t.Errorf("b had to wait %v", took)
		}
	})
}

func TestOwnClaimIsRecognizedAfterALostAnswer(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faulty(t, store)
		f.Next(faults.Write, faults.LoseAnswer)
		began := time.Now()
		term := campaign(t, mustNew(t, f, "a", nil))
		if took := time.Since(began); took > lease/2 {
			t.Errorf("elected after %v", took)
		}
		// The lease counts from when the claim was sent, not from when a read found it.
		if left, most := term.Remaining(), lease-time.Since(began); left > most {
			t.Errorf("%v remain of a lease that has %v left", left, most)
		}
		_ = term.Resign(t.Context())
	})
}

func TestDoRefusesWhenTooLittleOfTheLeaseIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faulty(t, memory.New())
		term := campaign(t, mustNew(t, f, "a", nil))
		called := 0
		work := func(ctx context.Context) error {
			called++
			<-ctx.Done()
			return context.Cause(ctx)
		}
		if err := term.Do(t.Context(), lease, work); !errors.Is(err, tenure.ErrTooLate) {
			t.Errorf("Do returned %v", err)
		}
		f.Partition()
		if err := term.Do(t.Context(), lease/2, work); !errors.Is(err, tenure.ErrExpired) {
			t.Errorf("Do returned %v", err)
		}
		if err := term.Do(t.Context(), 0, work); !errors.Is(err, tenure.ErrLost) {
			t.Errorf("Do returned %v", err)
		}
		if called != 1 {
			t.Errorf("the work was called %d times", called)
		}
		f.Heal()
		_ = term.Resign(t.Context())
	})
}

func TestLeadersReportsEachChangeAndVacancy(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		seen := make(chan string, 100)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for l, err := range mustNew(t, store, "observer", nil).Leaders(ctx) {
				if err != nil {
					t.Error(err)
				}
				seen <- l.ID
			}
		}()
		expect := func(want string) {
			t.Helper()
			if got := within(t, 3*lease, seen, "leader"); got != want {
				t.Errorf("leader %q, want %q", got, want)
			}
		}
		expect("")
		a := start(t, mustNew(t, store, "a", nil), holdOn)
		expect("a")
		time.Sleep(3 * lease)
		_ = a.end(t)
		expect("")
		stop()
		within(t, time.Minute, ended, "end of Leaders")
	})
}

func TestObserverNoticesACrashedLeader(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faulty(t, store)
		elect(t, f, "a", nil)
		o := mustNew(t, store, "observer", nil)
		if _, err := o.Wait(t.Context(), func(s tenure.Status) bool { return s.Leader.ID == "a" }); err != nil {
			t.Fatal(err)
		}
		f.Partition()
		died := time.Now()
		if _, err := o.Wait(t.Context(), func(s tenure.Status) bool { return s.Known && !s.Leader.Exists() }); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(died); took > 2*lease {
			t.Errorf("it took %v", took)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := mustNew(t, memory.New(), "a", nil).Wait(ctx, func(tenure.Status) bool { return false })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait returned %v", err)
		}
	})
}

func TestGraceDelaysTheAnnouncementAndNotTheLease(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		began := time.Now()
		a := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.Tuning.Grace = 10 * time.Second }), holdOn)
		synctest.Wait()
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		within(t, time.Minute, a.won, "term")
		if took := time.Since(began); took < 10*time.Second {
			t.Errorf("reported after %v", took)
		}
		if len(b.won) > 0 {
			t.Error("b was elected during that time")
		}
	})
}

func TestEventsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		a, _ := elect(t, memory.New(), "a", func(c *tenure.Config) { c.OnEvent = d.note })
		synctest.Wait()
		_ = a.end(t)
		var got []string
		for _, e := range d.events {
			got = append(got, string(e.Kind))
		}
		want := "candidate elected leader leaving released leader"
		if s := strings.Join(got, " "); s != want && s != "candidate elected leader leaving leader released" {
			t.Errorf("events %q, want %q", s, want)
		}
	})
}

func TestSlowOnEventCostsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		a := start(t, mustNew(t, memory.New(), "a", func(c *tenure.Config) {
			c.OnEvent = func(tenure.Event) { <-stuck }
		}), holdOn)
		term := within(t, time.Minute, a.won, "term")
		time.Sleep(10 * lease)
		if err := term.Err(); err != nil {
			t.Errorf("Err is %v", err)
		}
		if err := a.end(t); err != nil {
			t.Errorf("Run returned %v", err)
		}
		close(stuck)
	})
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

// arming arms the clock when a write is applied.
type arming struct {
	driver.Store
	clock *tripped
}

func (s arming) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	defer s.clock.armed.Store(true)
	return s.Store.CompareAndSwap(ctx, key, prev, value)
}

func TestContextThatEndsDuringAClaimDoesNotEndTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := 0
		for range 100 {
			ctx, cancel := context.WithCancel(context.Background())
			clock := &tripped{Clock: clock.Standard{}, trip: cancel}
			e := mustNew(t, arming{memory.NewPolled(), clock}, "a", func(c *tenure.Config) { c.Clock = clock })
			term, err := e.Campaign(ctx)
			if err != nil {
				continue // also correct
			}
			terms++
			if cause := context.Cause(term.Soft()); cause != nil {
				t.Fatalf("a term that Campaign returned is asked to leave: %v", cause)
			}
			_ = term.Resign(context.Background())
		}
		if terms == 0 {
			t.Error("Campaign returned no term in any round")
		}
	})
}

func TestResignReportsAnEarlierReleaseWithAnyContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := campaign(t, mustNew(t, memory.New(), "a", nil))
		_ = term.Resign(t.Context())
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 {
			if err := term.Resign(ended); err != nil {
				t.Fatalf("Resign returned %v", err)
			}
		}
	})
}

func TestSlowObserverContinuesAfterARefusal(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faults.New(store, 1, faults.Plan{Timeout: time.Second})
		f.Next(faults.Read, faults.LoseRequest) // meanwhile the observer looks for the first time
		f.Next(faults.Read, faults.Deny)
		e := mustNew(t, f, "a", nil)
		busy, got := make(chan struct{}), make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() {
			_, err := e.Wait(ctx, func(s tenure.Status) bool { <-busy; return s.Leader.ID == "b" })
			got <- err
		}()
		time.Sleep(lease)
		if err := e.Status().Err; !errors.Is(err, driver.ErrDenied) {
			t.Fatalf("Err is %v; the observer, which does not know yet, is to be refused", err)
		}
		a := start(t, e, holdOn)
		within(t, time.Minute, a.won, "term")
		_ = a.end(t)
		close(busy)
		start(t, mustNew(t, store, "b", nil), holdOn)
		if err := within(t, 2*time.Hour, got, "answer"); err != nil {
			t.Errorf("Wait returned %v", err)
		}
	})
}

func TestNewObserverReadsAgainAfterARefusal(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faults.New(store, 1, faults.Plan{})
		f.Next(faults.Read, faults.Deny)
		e := mustNew(t, f, "a", nil)
		for _, err := range e.Leaders(t.Context()) {
			if err == nil {
				t.Fatal("not refused")
			}
			time.Sleep(time.Minute) // an operator acts, and this observer is still there
			if _, err := e.Wait(t.Context(), func(s tenure.Status) bool { return s.Known }); err != nil {
				t.Errorf("Wait returned %v", err)
			}
		}
	})
}

func TestGoexitInOnEventCostsOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		a := start(t, mustNew(t, memory.New(), "a", func(c *tenure.Config) {
			c.OnEvent = func(e tenure.Event) {
				if e.Kind == tenure.EventCandidate {
					runtime.Goexit()
				}
				d.note(e)
			}
		}), holdOn)
		within(t, time.Minute, a.won, "term")
		_ = a.end(t)
		if d.find(tenure.EventElected) == nil || d.find(tenure.EventReleased) == nil {
			t.Errorf("only these events were reported: %v", d.events)
		}
	})
}

func TestHandOverNamesItsElectionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faults.New(memory.New(), 1, faults.Plan{Chances: faults.Chances{faults.Fail: 1}})
		err := mustNew(t, f, "a", nil).HandOver(t.Context(), "")
		if !errors.Is(err, faults.ErrInjected) || strings.Count(err.Error(), "tenure:") != 1 {
			t.Errorf("HandOver returned %v", err)
		}
	})
}

func TestMetadataIsCopiedInAndOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := map[string]string{"zone": "1"}
		e := mustNew(t, memory.New(), "a", func(c *tenure.Config) { c.Metadata = given })
		term := campaign(t, e)
		given["zone"] = "2"
		s := e.Status()
		s.Leader.Metadata["zone"] = "3"
		time.Sleep(lease) // with -race: renewals encode it during this time
		if s := e.Status(); s.Leader.Metadata["zone"] != "1" {
			t.Errorf("zone %s", s.Leader.Metadata["zone"])
		}
		_ = term.Resign(t.Context())
	})
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
