package tenure_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
)

// gate is a Nominator that also decides when its candidate may lead at all.
type gate struct {
	manualNominator
	open atomic.Bool
}

func (g *gate) MayLead() bool { return g.open.Load() }

// set follows the contract: the answer changes first, then set calls each see.
func (g *gate) set(open bool) {
	g.open.Store(open)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, see := range g.sees {
		see(g.yes)
	}
}

func withGate(by *gate) func(*tenure.Config) { return func(c *tenure.Config) { c.Nominator = by } }

// A candidate whose gate is closed never claims, not even during a long vacancy. A leader whose
// gate closes is asked to finish.
func TestGateKeepsACandidateOut(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var g gate
		r := start(t, mustNew(t, store, "a", withGate(&g)), holdOn)
		time.Sleep(20 * lease)
		if len(r.won) > 0 {
			t.Fatal("a candidate leads that may not")
		}
		g.set(true)
		first := within(t, 4*lease, r.won, "term of one that may lead")
		g.set(false)
		<-first.Soft().Done()
		if cause := context.Cause(first.Soft()); !errors.Is(cause, tenure.ErrIneligible) {
			t.Errorf("it was asked to finish because of %v", cause)
		}
		time.Sleep(20 * lease)
		if len(r.won) > 0 {
			t.Error("it leads again")
		}
	})
}

// Each step calls MayLead. So a gate also closes without a call of see, for example while the
// process was stopped.
func TestGateIsAskedBeforeAClaim(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var g gate
		g.open.Store(true)
		r := start(t, mustNew(t, store, "a", withGate(&g)), holdOn)
		time.Sleep(lease / 2) // it waits for the nominee
		if len(r.won) > 0 {
			t.Fatal("it has not waited for the nominee")
		}
		g.open.Store(false)
		time.Sleep(20 * lease)
		if len(r.won) > 0 {
			t.Error("a candidate leads that may not")
		}
	})
}

// A candidate may lead only if both SetEligible and the gate allow it.
func TestGateAndEligibility(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var g gate
		e := mustNew(t, store, "a", withGate(&g))
		r := start(t, e, holdOn)
		e.SetEligible(true)
		time.Sleep(10 * lease)
		e.SetEligible(false)
		g.set(true)
		time.Sleep(10 * lease)
		if len(r.won) > 0 {
			t.Error("one of the two is enough")
		}
		e.SetEligible(true)
		within(t, 4*lease, r.won, "term")
	})
}
