package tenure_test

import (
	"context"
	"errors"
	"testing"

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
		"Campaign asks to finish, and waits": func(s *scene) {
			e := s.new("a")
			term := e.campaign()
			e.SetEligible(false)
			within(s.T, atOnce, term.Context().Done(), "end of the soft context")
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
