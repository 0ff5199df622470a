package tenure_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
)

func TestEligibility(t *testing.T) {
	scenes{
		"a candidate that is ineligible from the start does not lead": func(s *scene) {
			a := s.new("a")
			if !a.Status().Eligible {
				s.Error("it is not eligible before anything was said of it")
			}
			a.SetEligible(false)
			a.start(holdOn).idles(100 * lease)
			if got := a.Status(); got.Eligible || got.State != tenure.StateCandidate {
				s.Errorf("%+v", got)
			}
			a.SetEligible(true)
			a.leads(atOnce)
		},
		"Changed is closed by a change, and only by one": func(s *scene) {
			e := s.new("a")
			changed := e.Changed()
			e.SetEligible(true)
			before := closed(changed)
			e.SetEligible(false)
			if before || !closed(changed) {
				s.Errorf("closed without a change: %v, by one: %v", before, closed(changed))
			}
		},
		// Work that is asked to finish has its lease until it returns. Then another candidate leads,
		// and the former leader goes on campaigning.
		"a leader that becomes ineligible hands over": func(s *scene) {
			const finishing = 8 * time.Second // longer than the time between two renewals
			a := s.new("a").start(func(ctx context.Context, term *tenure.Term) error {
				<-ctx.Done()
				time.Sleep(finishing)
				if left := term.Remaining(); left < lease-finishing {
					s.Errorf("%v are left after %v of finishing: the lease was not renewed", left, finishing)
				}
				return context.Cause(ctx)
			})
			first := a.leads(lease)
			b := s.run("b", quick)
			time.Sleep(lease)
			a.SetEligible(false)
			s.asked(first, tenure.ErrIneligible)
			if a.state(tenure.StateLeaving); first.Context().Err() != nil {
				s.Error("the hard context has ended while the work finishes")
			}
			b.leadsAfter(finishing, finishing+2*time.Second)
			b.SetEligible(false)
			a.idles(20 * lease)
			a.SetEligible(true)
			a.leads(atOnce)
			a.reports(tenure.EventLeaving, tenure.ErrIneligible)
			a.hides(tenure.EventFailed) // returning the cause of the context is no failure
		},
		"no candidate is eligible, then one is": func(s *scene) {
			o := s.new("o")
			all := s.runAll("a b c")
			led := func(s tenure.Status) bool { return s.Leader.ID != "" }
			o.waits(led)
			for _, p := range all {
				p.SetEligible(false)
			}
			o.sees("")
			quiet, cancel := context.WithTimeout(s.Context(), 50*lease)
			defer cancel()
			if got, err := o.Wait(quiet, led); err == nil {
				s.Errorf("%q leads, and no candidate is eligible", got.Leader.ID)
			}
			b := all["b"]
			b.SetEligible(true)
			for len(b.won) > 0 {
				<-b.won // from the earlier term
			}
			b.leads(atOnce)
		},
		"an ineligible candidate requests no hand-over": func(s *scene) {
			_, term := s.elect("a")
			b := s.new("b", priority(1))
			b.SetEligible(false)
			b.start(holdOn)
			time.Sleep(30 * lease)
			b.SetEligible(true)
			time.Sleep(2*lease - time.Second)
			s.holds(term)
			b.leads(3 * lease)
		},
		// No other member overwrites the version that a claim with an unknown outcome expects. So its
		// sender resolves the claim, and the failures end.
		"an unknown claim is settled without eligible candidates": func(s *scene) {
			f, far := s.faulty()
			f.Next(faults.Write, faults.Fail)
			f.Next(faults.Read, faults.None, faults.Fail, faults.Fail, faults.Fail)
			a := far.run("a")
			synctest.Wait()
			a.SetEligible(false)
			time.Sleep(5 * lease)
			if got := a.Status(); got.Failures > 0 || got.Health() != nil {
				s.Errorf("%d failures long ago make it ill: %v", got.Failures, got.Health())
			}
		},
		"within the grace it releases at once": func(s *scene) {
			a := s.run("a", grace(4*time.Second))
			time.Sleep(time.Second)
			a.SetEligible(false)
			synctest.Wait()
			s.run("b").leads(atOnce)
			a.idles(5 * lease)
		},
		"Campaign asks to finish, and waits": func(s *scene) {
			e := s.new("a")
			term := e.campaign()
			e.SetEligible(false)
			within(s.T, atOnce, term.Soft().Done(), "end of the soft context")
			s.is("Err", term.Err(), nil)
			s.resign(term)
			ctx, cancel := context.WithTimeout(s.Context(), 10*lease)
			defer cancel()
			if term, err := e.Campaign(ctx); term != nil || !errors.Is(err, context.DeadlineExceeded) {
				s.Errorf("Campaign returned %v, %v", term, err)
			}
		},
		// An ineligible successor that is named by force delays the others by its head start.
		"an ineligible named successor": func(s *scene) {
			a, _ := s.elect("a", quick)
			others := s.runAll("b c", quick)
			others["b"].SetEligible(false)
			time.Sleep(lease)
			s.is("ForceHandOver", a.ForceHandOver(s.Context(), "b"), nil)
			others["c"].leads(3 * time.Second)
			others["b"].idles(0)
		},
	}.play(t)
}

// An ineligible sender releases its claim when it finds the claim applied. No member waits for the
// lease.
func TestClaimInFlightIsReleasedWhenIneligible(t *testing.T) {
	all := scenes{}
	for _, fault := range []faults.Fault{faults.DelayAfter, faults.LoseAnswer, faults.DelayBefore} {
		all[fault.String()] = func(s *scene) {
			f, far := s.faulty(faults.Plan{MinDelay: time.Second, MaxDelay: time.Second})
			f.Next(faults.Write, fault)
			a := far.run("a", patient)
			time.Sleep(time.Millisecond)
			a.SetEligible(false)
			s.run("b", quick).leads(lease * 9 / 10)
			a.idles(10 * lease)
			s.is("Health", a.Status().Health(), nil)
		}
	}
	all.play(t, polled) // a push would show the claim at once
}
