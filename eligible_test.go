package tenure_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// atOnce is longer than a few steps of virtual time and shorter than any wait.
const atOnce = 10 * time.Millisecond

func TestCandidateIneligibleFromTheStartDoesNotLead(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		e := mustNew(t, store, "a", nil)
		if s := e.Status(); !s.Eligible {
			t.Error("it is not eligible before anything was said of it")
		}
		e.SetEligible(false)
		a := start(t, e, holdOn)
		time.Sleep(100 * lease)
		if s := e.Status(); s.Eligible || s.State != tenure.StateCandidate || len(a.won) > 0 {
			t.Errorf("%d terms, %+v", len(a.won), s)
		}
		e.SetEligible(true)
		within(t, atOnce, a.won, "term")
	})
}

// Work that is asked to finish has its lease until it returns. Then another candidate leads, and
// the former leader goes on campaigning.
func TestLeaderThatBecomesIneligibleHandsOver(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var d diary
		const finishing = 8 * time.Second // longer than the time between two renewals
		a := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.OnEvent = d.note }), func(ctx context.Context, term *tenure.Term) error {
			<-ctx.Done()
			time.Sleep(finishing)
			if left := term.Remaining(); left < lease-finishing {
				t.Errorf("%v are left after %v of finishing: the lease was not renewed", left, finishing)
			}
			return context.Cause(ctx)
		})
		first := within(t, lease, a.won, "term of a")
		b := start(t, mustNew(t, store, "b", func(c *tenure.Config) { c.Tuning.Poll, c.Tuning.PollStable = time.Second, time.Second }), holdOn)
		time.Sleep(lease)
		before := time.Now()
		a.election.SetEligible(false)
		if cause := context.Cause(first.Soft()); !errors.Is(cause, tenure.ErrIneligible) {
			t.Errorf("asked to finish because of %v", cause)
		}
		if s := a.election.Status(); s.State != tenure.StateLeaving || first.Context().Err() != nil {
			t.Errorf("while the work finishes: %s, hard context %v", s.State, first.Context().Err())
		}
		within(t, lease, b.won, "term of b")
		if took := time.Since(before); took < finishing || took > finishing+2*time.Second {
			t.Errorf("b was elected after %v; the work took %v to finish", took, finishing)
		}
		b.election.SetEligible(false)
		time.Sleep(20 * lease)
		if len(a.won) > 0 {
			t.Error("a leads, and is not eligible")
		}
		a.election.SetEligible(true)
		within(t, atOnce, a.won, "another term of a")
		if e := d.find(tenure.EventLeaving); e == nil || !errors.Is(e.Cause, tenure.ErrIneligible) {
			t.Errorf("the event %+v", e)
		}
		if e := d.find(tenure.EventFailed); e != nil {
			t.Errorf("returning the cause of the context counts as a failure: %v", e.Cause)
		}
	})
}

func TestNoCandidateIsEligibleThenOneIs(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		o := mustNew(t, store, "o", nil)
		all := map[string]*running{}
		for _, id := range []string{"a", "b", "c"} {
			all[id] = start(t, mustNew(t, store, id, nil), holdOn)
		}
		led := func(s tenure.Status) bool { return s.Leader.ID != "" }
		if _, err := o.Wait(t.Context(), led); err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			r.election.SetEligible(false)
		}
		if _, err := o.Wait(t.Context(), func(s tenure.Status) bool { return s.Known && !led(s) }); err != nil {
			t.Fatal(err)
		}
		quiet, cancel := context.WithTimeout(t.Context(), 50*lease)
		defer cancel()
		if s, err := o.Wait(quiet, led); err == nil {
			t.Errorf("%q leads, and no candidate is eligible", s.Leader.ID)
		}
		all["b"].election.SetEligible(true)
		for len(all["b"].won) > 0 {
			<-all["b"].won // from the earlier term
		}
		within(t, atOnce, all["b"].won, "term of b")
	})
}

func TestStatusShowsEligibility(t *testing.T) {
	e := mustNew(t, memory.New(), "a", nil)
	changed := e.Changed()
	e.SetEligible(true) // no change
	select {
	case <-changed:
		t.Error("Changed is closed without a change")
	default:
	}
	e.SetEligible(false)
	select {
	case <-changed:
	default:
		t.Error("Changed is not closed by a change")
	}
}

func TestIneligibleCandidateRequestsNoHandOver(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		_, term := elect(t, store, "a", nil)
		e := mustNew(t, store, "b", func(c *tenure.Config) { c.Priority = 1 })
		e.SetEligible(false)
		b := start(t, e, holdOn)
		time.Sleep(30 * lease)
		e.SetEligible(true)
		time.Sleep(2*lease - time.Second)
		if err := term.Err(); err != nil {
			t.Fatalf("a had to hand over to a candidate that is not eligible or has just become eligible: %v", err)
		}
		within(t, 3*lease, b.won, "term of b")
	})
}

// An ineligible sender releases its claim when it finds the claim applied. No member waits for the
// lease.
func TestClaimInFlightIsReleasedWhenIneligible(t *testing.T) {
	for name, fault := range map[string]faults.Fault{"late answer": faults.DelayAfter, "lost answer": faults.LoseAnswer, "late request": faults.DelayBefore} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.NewPolled() // a push would show the claim at once
				f := faulty(t, store, faults.Plan{MinDelay: time.Second, MaxDelay: time.Second})
				f.Next(faults.Write, fault)
				patient := func(c *tenure.Config) { c.Tuning.Retry = []time.Duration{time.Second} }
				a := start(t, mustNew(t, f, "a", patient), holdOn)
				time.Sleep(time.Millisecond)
				a.election.SetEligible(false)
				b := start(t, mustNew(t, store, "b", func(c *tenure.Config) { c.Tuning.Poll, c.Tuning.PollStable = time.Second, time.Second }), holdOn)
				within(t, lease*9/10, b.won, "term of b")
				time.Sleep(10 * lease)
				if s := a.election.Status(); len(a.won) > 0 || s.Health() != nil {
					t.Errorf("%d terms of a; %v", len(a.won), s.Health())
				}
			})
		})
	}
}

// No other member overwrites the version that a claim with an unknown outcome expects. So its
// sender resolves the claim, and the failures end.
func TestUnknownClaimIsSettledWithoutEligibleCandidates(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faulty(t, store)
		f.Next(faults.Write, faults.Fail)
		f.Next(faults.Read, faults.None, faults.Fail, faults.Fail, faults.Fail)
		a := start(t, mustNew(t, f, "a", nil), holdOn)
		synctest.Wait()
		a.election.SetEligible(false)
		time.Sleep(5 * lease)
		if s := a.election.Status(); s.Failures > 0 || s.Health() != nil {
			t.Errorf("%d failures long ago make it ill: %v", s.Failures, s.Health())
		}
	})
}

func TestIneligibleWithinTheGraceReleasesAtOnce(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.Tuning.Grace = 4 * time.Second }), holdOn)
		time.Sleep(time.Second)
		a.election.SetEligible(false)
		synctest.Wait()
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		within(t, atOnce, b.won, "term of b")
		time.Sleep(5 * lease)
		if len(a.won) > 0 {
			t.Error("a leads, and is not eligible")
		}
	})
}

func TestCampaignOfAnIneligibleCandidate(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		e := mustNew(t, store, "a", nil)
		term := campaign(t, e)
		e.SetEligible(false)
		within(t, atOnce, term.Soft().Done(), "end of the soft context")
		if err := term.Err(); err != nil {
			t.Errorf("the lease is lost already: %v", err)
		}
		if err := term.Resign(t.Context()); err != nil {
			t.Errorf("resigning: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*lease)
		defer cancel()
		if term, err := e.Campaign(ctx); term != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Campaign returned %v, %v", term, err)
		}
	})
}

// An ineligible successor that is named by force delays the others by its head start.
func TestIneligibleNamedSuccessor(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		quick := func(c *tenure.Config) { c.Tuning.Poll, c.Tuning.PollStable = time.Second, time.Second }
		a, _ := elect(t, store, "a", quick)
		b, c := start(t, mustNew(t, store, "b", quick), holdOn), start(t, mustNew(t, store, "c", quick), holdOn)
		b.election.SetEligible(false)
		time.Sleep(lease)
		if err := a.election.ForceHandOver(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		within(t, 3*time.Second, c.won, "term of c")
		if len(b.won) > 0 {
			t.Error("b leads, and is not eligible")
		}
	})
}
