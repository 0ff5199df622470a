package tenure_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// manualNominator is a Nominator that the test controls.
type manualNominator struct {
	mu      sync.Mutex
	yes     bool
	sees    map[int]func(bool)
	entries int
}

func (a *manualNominator) Nominate(see func(bool)) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries++
	id := a.entries
	if a.sees == nil {
		a.sees = map[int]func(bool){}
	}
	a.sees[id] = see
	see(a.yes)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.sees, id)
	}
}

func (a *manualNominator) notify(yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.yes = yes
	for _, see := range a.sees {
		see(yes)
	}
}

func (a *manualNominator) listeners() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.sees)
}

func nominated(by *manualNominator) func(*tenure.Config) {
	return func(c *tenure.Config) { c.Nominator = by }
}

func TestNomineeLeadsAndOthersWait(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var of [3]manualNominator
		var all [3]*running
		of[1].notify(true)
		for i, id := range []string{"a", "b", "c"} {
			all[i] = start(t, mustNew(t, store, id, nominated(&of[i])), holdOn)
		}
		first := within(t, lease/2, all[1].won, "term of the nominee")
		of[1].notify(false)
		of[2].notify(true)
		second := within(t, 2*lease, all[2].won, "term of the next nominee")
		if cause := context.Cause(first.Soft()); !errors.Is(cause, tenure.ErrNominationLost) {
			t.Errorf("b was asked to finish because of %v", cause)
		}
		time.Sleep(10 * lease)
		if err := second.Err(); err != nil || len(all[0].won)+len(all[1].won) > 0 {
			t.Errorf("leadership went on moving: %v", err)
		}
		for _, r := range all {
			_ = r.end(t)
		}
		synctest.Wait()
		if n := of[0].listeners() + of[1].listeners() + of[2].listeners(); n != 0 {
			t.Errorf("%d elections that have ended still listen to their nominators", n)
		}
	})
}

// Work that is asked to finish keeps its lease until it returns, and no other candidate leads
// before.
func TestLostNominationCausesAHandOver(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var old, next manualNominator
		old.notify(true)
		const finishing = 4 * time.Second
		a := start(t, mustNew(t, store, "a", nominated(&old)), func(ctx context.Context, term *tenure.Term) error {
			<-ctx.Done()
			time.Sleep(finishing)
			if err := term.Err(); err != nil {
				t.Errorf("while finishing: %v", err)
			}
			return nil
		})
		within(t, lease/2, a.won, "term of a")
		b := start(t, mustNew(t, store, "b", func(c *tenure.Config) {
			c.Nominator, c.Tuning.Poll, c.Tuning.PollStable = &next, time.Second, time.Second
		}), holdOn)
		time.Sleep(lease)
		before := time.Now()
		next.notify(true)
		old.notify(false)
		within(t, lease, b.won, "term of b")
		if took := time.Since(before); took < finishing || took > finishing+2*time.Second {
			t.Errorf("b was elected after %v; the work took %v to finish", took, finishing)
		}
	})
}

func TestWithoutANomineeAnotherCandidateLeadsAfterPrecedence(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var idle manualNominator
		const precedence = 7 * time.Second
		before := time.Now()
		_, term := elect(t, store, "a", func(c *tenure.Config) { c.Nominator, c.Tuning.Precedence = &idle, precedence })
		if took := time.Since(before); took < precedence || took > 2*lease {
			t.Errorf("elected after %v, though the nominee has %v", took, precedence)
		}
		time.Sleep(5 * lease)
		if err := term.Err(); err != nil {
			t.Errorf("without a nominee: %v", err)
		}
		var real manualNominator
		real.notify(true)
		elect(t, store, "b", nominated(&real))
	})
}

func TestNomineeOnlyKeepsOtherCandidatesOut(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var by manualNominator
		a := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.Nominator, c.NomineeOnly = &by, true }), holdOn)
		time.Sleep(100 * lease)
		if len(a.won) > 0 {
			t.Fatal("elected without a nomination")
		}
		by.notify(true)
		within(t, lease/2, a.won, "term of a")
	})
}

// single is a Nominator that accepts one listener at a time.
type single struct {
	mu       sync.Mutex
	see      func(bool)
	overlaps int
}

func (s *single) Nominate(see func(bool)) (stop func()) {
	time.Sleep(time.Millisecond) // like a Nominator that must ask a server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.see != nil {
		s.overlaps++
	}
	s.see = see
	see(true)
	return func() {
		time.Sleep(time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.see = nil
	}
}

// The stop of one nomination comes before the start of the next one, even if an election campaigns
// again at once.
func TestNominatorIsCalledSequentially(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var by single
		e := mustNew(t, store, "a", func(c *tenure.Config) { c.Nominator, c.NomineeOnly = &by, true })
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*lease)
			term, err := e.Campaign(ctx)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			_ = term.Resign(t.Context())
		}
		time.Sleep(time.Minute)
		by.mu.Lock()
		defer by.mu.Unlock()
		if by.overlaps > 0 || by.see != nil {
			t.Errorf("%d calls of Nominate before the stop of the one before; the last is listening: %v", by.overlaps, by.see != nil)
		}
	})
}

// vacancyNominator is a Nominator that names this candidate as soon as it is notified of a vacancy.
type vacancyNominator struct {
	manualNominator
	calls chan bool
}

func (a *vacancyNominator) Vacant(vacant bool) {
	a.calls <- vacant
	a.notify(vacant)
}

func TestNominatorIsNotifiedOfAVacancy(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, _ := elect(t, store, "a", nil)
		by := vacancyNominator{calls: make(chan bool, 100)}
		b := start(t, mustNew(t, store, "b", func(c *tenure.Config) { c.Nominator, c.NomineeOnly = &by, true }), holdOn)
		time.Sleep(lease)
		if n := len(by.calls); n != 0 {
			t.Errorf("Vacant was called %d times while a leads", n)
		}
		_ = a.end(t)
		within(t, 2*lease, b.won, "term of b")
		if first, second := within(t, lease, by.calls, "the vacancy"), within(t, lease, by.calls, "the new leader"); !first || second {
			t.Errorf("Vacant was called with %v, then %v", first, second)
		}
	})
}

// late is a Nominator that calls its listeners, old and new ones, only when the test does.
type late struct {
	mu   sync.Mutex
	sees []func(bool)
}

func (l *late) Nominate(see func(bool)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sees = append(l.sees, see)
	return func() {}
}

func (l *late) call(listener int, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sees[listener](yes)
}

// Calls for an earlier campaign do not count in the next one.
func TestNominationEndsWithTheCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var by late
		e := mustNew(t, memory.New(), "a", func(c *tenure.Config) { c.Nominator, c.NomineeOnly = &by, true })
		first := start(t, e, holdOn)
		synctest.Wait()
		by.call(0, true)
		within(t, lease, first.won, "first term")
		_ = first.end(t)
		second := start(t, e, holdOn)
		time.Sleep(5 * lease)
		by.call(0, true)
		time.Sleep(5 * lease)
		if len(second.won) > 0 {
			t.Fatal("elected by a nomination that is over")
		}
		by.call(1, true)
		within(t, lease, second.won, "second term")
	})
}

func TestNominatorCannotBeReconfigured(t *testing.T) {
	var by, other manualNominator
	e := mustNew(t, memory.New(), "a", nominated(&by))
	reconfigure(t, e, func(c *tenure.Config) { c.Nominator = &other })
	if configOf(t, e).Nominator != &by {
		t.Error("it was changed")
	}
}

// stuck is a Nominator that never returns and blocks in every call.
type stuck struct {
	asked  atomic.Int64
	unlock chan struct{}
}

func (s *stuck) Nominate(func(bool)) func() {
	s.asked.Add(1)
	<-s.unlock
	return func() {}
}

func TestBlockedNominatorCostsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		by := stuck{unlock: make(chan struct{})}
		a, term := elect(t, memory.New(), "a", func(c *tenure.Config) { c.Nominator = &by })
		time.Sleep(10 * lease)
		if err := term.Err(); err != nil || by.asked.Load() != 1 {
			t.Errorf("%v; asked %d times", err, by.asked.Load())
		}
		_ = a.end(t)
		for range 10 {
			again := start(t, a.election, holdOn)
			within(t, 3*lease, again.won, "another term of a")
			_ = again.end(t)
		}
		if n := by.asked.Load(); n != 1 {
			t.Errorf("%d calls hang", n)
		}
		close(by.unlock)
	})
}

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

func TestHigherPriorityTakesOverOnceMature(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var d diary
		_, first := elect(t, store, "a", nil)
		b := start(t, mustNew(t, store, "b", func(c *tenure.Config) { c.Priority, c.OnEvent = 1, d.note }), holdOn)
		time.Sleep(2*lease - time.Second)
		if err := first.Err(); err != nil {
			t.Fatalf("a lost its term to a newcomer: %v", err)
		}
		second := within(t, 3*lease, b.won, "term of b")
		if second.Token() <= first.Token() || !errors.Is(first.Err(), tenure.ErrLost) {
			t.Errorf("tokens %d and %d, first term %v", first.Token(), second.Token(), first.Err())
		}
		time.Sleep(20 * lease)
		if e := d.find(tenure.EventAsking); e == nil || e.Term != first.Token() {
			t.Errorf("the event of the request: %+v", e)
		}
		if err := second.Err(); err != nil {
			t.Errorf("leadership went on moving: %v", err)
		}
	})
}

// The priorities of the leader and of a candidate may change while they run.
func TestChangedPriorityMovesLeadership(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, _ := elect(t, store, "a", nil)
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(5 * lease)
		reconfigure(t, a.election, func(c *tenure.Config) { c.Priority = -1 })
		within(t, 3*lease, b.won, "term of b")
		reconfigure(t, a.election, func(c *tenure.Config) { c.Priority = 5 })
		within(t, 15*lease, a.won, "second term of a")
	})
}

// A candidate that has declined and backs off does not interrupt the leader.
func TestCandidateInBackOffRequestsNoHandOver(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		elect(t, store, "a", nil)
		var asked atomic.Int64
		b := start(t, mustNew(t, store, "b", func(c *tenure.Config) {
			c.Priority, c.Tuning.Backoff = 1, func(int) time.Duration { return time.Hour }
			c.OnEvent = func(e tenure.Event) {
				if e.Kind == tenure.EventAsking {
					asked.Add(1)
				}
			}
		}), func(context.Context, *tenure.Term) error { return tenure.ErrDecline })
		within(t, time.Minute, b.won, "term of b")
		time.Sleep(50 * time.Minute)
		if n := asked.Load(); n != 1 {
			t.Errorf("b asked %d times", n)
		}
	})
}

// silent is a store whose members should push to each other, but no push arrives.
type silent struct{ *memory.Polled }

func (silent) Watch(context.Context, string, func(driver.Entry)) (func(), error) {
	return func() {}, nil
}
func (silent) PeerPushed() {}

// A leader that hands over cannot know whether others received its push.
func TestHandOverWithFailingPushes(t *testing.T) {
	for delay := range 8 {
		synctest.Test(t, func(t *testing.T) {
			store := silent{memory.NewPolled()}
			a, _ := elect(t, store, "a", nil)
			b := start(t, mustNew(t, store, "b", nil), holdOn)
			time.Sleep(2*lease + time.Duration(delay)*900*time.Millisecond)
			handOver(t, b.election, "b")
			select {
			case <-b.won:
			case <-a.won:
				t.Errorf("delay %d: leadership went back to a", delay)
			case <-time.After(4 * lease):
				t.Errorf("delay %d: no leader", delay)
			}
		})
	}
}

// A candidate requests a hand-over only while it campaigns, however slow the store is.
func TestPriorityRequestEndsWithItsCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		elect(t, store, "a", nil)
		f := faults.New(store, 1, faults.Plan{})
		f.Next(faults.Write, faults.HangBefore)
		asking := make(chan struct{})
		b := start(t, mustNew(t, f, "b", func(c *tenure.Config) {
			c.Priority = 1
			c.OnEvent = func(e tenure.Event) {
				if e.Kind == tenure.EventAsking {
					close(asking)
				}
			}
		}), holdOn)
		within(t, 3*lease, asking, "request")
		synctest.Wait()
		stopped := time.Now()
		_ = b.end(t)
		f.Wait()
		if took := time.Since(stopped); took > 0 {
			t.Errorf("the request went on for %v", took)
		}
	})
}
