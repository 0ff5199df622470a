package tenure_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
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
		"Watch yields after a change, and only after one": func(s *scene) {
			e := s.new("a")
			seen := make(chan bool, 10)
			go func() {
				for status := range e.Watch(s.Context()) {
					seen <- status.Eligible
				}
			}()
			time.Sleep(lease)
			for synctest.Wait(); len(seen) > 0; { // of the first answers of the store
				<-seen
			}
			e.SetEligible(true)
			e.SetEligible(false)
			if now := <-seen; now {
				s.Error("no longer eligible, and Watch says that it is")
			}
			if synctest.Wait(); len(seen) > 0 {
				s.Errorf("%d more statuses", len(seen))
			}
		},
		"Campaign asks to finish, and waits": func(s *scene) {
			e := s.new("a")
			term := e.campaign()
			e.SetEligible(false)
			within(s.T, atOnce, term.Context().Done(), "end of its context")
			e.state(tenure.StateLeaving)
			s.is("Err", term.Err(), nil)
			s.resign(term)
			e.reports(tenure.EventLeaving, tenure.ErrIneligible)
			ctx, cancel := context.WithTimeout(s.Context(), 10*lease)
			defer cancel()
			if term, err := e.Campaign(ctx); term != nil || !errors.Is(err, context.DeadlineExceeded) {
				s.Errorf("Campaign returned %v, %v", term, err)
			}
		},
	}.play(t)
}
