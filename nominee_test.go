package tenure_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/nomination"
)

// manualNominator is a Nominator that the test controls.
type manualNominator struct {
	mu   sync.Mutex
	yes  bool
	sees []func(bool) // one for each call of Nominate; nil once it was stopped
	keep bool         // stopped ones go on seeing
}

func (n *manualNominator) Nominate(see func(bool)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := len(n.sees)
	n.sees = append(n.sees, see)
	see(n.yes)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.keep {
			n.sees[i] = nil
		}
	}
}

func (n *manualNominator) notify(yes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.yes = yes
	for _, see := range n.sees {
		if see != nil {
			see(yes)
		}
	}
}

// listeners returns how many nominations were not stopped.
func (n *manualNominator) listeners() (left int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, see := range n.sees {
		if see != nil {
			left++
		}
	}
	return left
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
	g.notify(g.yes)
}

// vacancyNominator is a Nominator that names this candidate as soon as it is notified of a vacancy.
type vacancyNominator struct {
	manualNominator
	calls chan bool
}

func (n *vacancyNominator) Vacant(vacant bool) {
	n.calls <- vacant
	n.notify(vacant)
}

// single is a Nominator that accepts one listener at a time.
type single struct {
	mu       sync.Mutex
	see      func(bool)
	overlaps int
}

func (n *single) Nominate(see func(bool)) (stop func()) {
	time.Sleep(time.Millisecond) // like a Nominator that must ask a server
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.see != nil {
		n.overlaps++
	}
	n.see = see
	see(true)
	return func() {
		time.Sleep(time.Second)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.see = nil
	}
}

// stuck is a Nominator that never returns and blocks in every call.
type stuck struct {
	asked  atomic.Int64
	unlock chan struct{}
}

func (n *stuck) Nominate(func(bool)) func() {
	n.asked.Add(1)
	<-n.unlock
	return func() {}
}

func TestNominators(t *testing.T) {
	scenes{
		"the nominee leads and others wait": func(s *scene) {
			var of [3]manualNominator
			var all [3]*process
			of[1].notify(true)
			for i, id := range []string{"a", "b", "c"} {
				all[i] = s.run(id, nominated(&of[i]))
			}
			first := all[1].leads(lease / 2)
			of[1].notify(false)
			of[2].notify(true)
			second := all[2].leads(2 * lease)
			s.asked(first, nomination.ErrWithdrawn)
			time.Sleep(10 * lease)
			s.holds(second)
			for i, p := range all {
				p.idles(0)
				_ = p.end()
				synctest.Wait()
				if n := of[i].listeners(); n != 0 {
					s.Errorf("%s has ended, and %d listeners are left", p.ID(), n)
				}
			}
		},
		// The stop of one nomination comes before the start of the next one, even if an election
		// campaigns again at once.
		"calls are sequential": func(s *scene) {
			var by single
			e := s.new("a", nominated(&by), nomineeOnly)
			for range 20 {
				s.resign(e.campaign())
			}
			time.Sleep(time.Minute)
			by.mu.Lock()
			defer by.mu.Unlock()
			if by.overlaps > 0 || by.see != nil {
				s.Errorf("%d calls of Nominate before the stop of the one before; the last is listening: %v", by.overlaps, by.see != nil)
			}
		},
		"they are notified of a vacancy": func(s *scene) {
			a, _ := s.elect("a")
			by := vacancyNominator{calls: make(chan bool, 100)}
			b := s.run("b", nominated(&by), nomineeOnly)
			time.Sleep(lease)
			if n := len(by.calls); n != 0 {
				s.Errorf("Vacant was called %d times while a leads", n)
			}
			_ = a.end()
			b.leads(2 * lease)
			for _, want := range []bool{true, false} {
				if got := within(s.T, lease, by.calls, "call of Vacant"); got != want {
					s.Errorf("Vacant was called with %v, want %v", got, want)
				}
			}
		},
		"a nomination ends with its campaign": func(s *scene) {
			by := manualNominator{keep: true}
			a := s.run("a", nominated(&by), nomineeOnly)
			synctest.Wait()
			by.sees[0](true)
			a.leads(lease)
			_ = a.end()
			a.start(holdOn).idles(5 * lease)
			by.sees[0](true)
			a.idles(5 * lease)
			by.sees[1](true)
			a.leads(lease)
		},
		"it cannot be reconfigured": func(s *scene) {
			var by, other manualNominator
			e := s.new("a", nominated(&by))
			e.reconfigure(nominated(&other))
			if e.config().Nomination.Nominator(key) != &by {
				s.Error("it was changed")
			}
			e.reconfigure(nomineeOnly)
			e.start(holdOn).idles(10 * lease) // it still counts
			by.notify(true)
			e.leads(lease)
		},
		"one that blocks costs no lease": func(s *scene) {
			by := stuck{unlock: make(chan struct{})}
			a, term := s.elect("a", nominated(&by))
			time.Sleep(10 * lease)
			s.holds(term)
			_ = a.end()
			for range 10 {
				a.start(holdOn).leads(3 * lease)
				_ = a.end()
			}
			if n := by.asked.Load(); n != 1 {
				s.Errorf("%d calls hang", n)
			}
			close(by.unlock)
		},
	}.play(t)
}

func TestGates(t *testing.T) {
	scenes{
		// Not even during a long vacancy. A leader whose gate closes is asked to finish.
		"a closed one keeps a candidate out": func(s *scene) {
			var g gate
			r := s.run("a", nominated(&g))
			r.idles(20 * lease)
			g.set(true)
			first := r.leads(4 * lease)
			g.set(false)
			s.asked(first, tenure.ErrIneligible)
			r.idles(20 * lease)
		},
		// Each step calls MayLead. So a gate also closes without a call of see, for example while
		// the process was stopped.
		"it is asked before a claim": func(s *scene) {
			var g gate
			g.open.Store(true)
			r := s.run("a", nominated(&g))
			r.idles(lease / 2) // it waits for the nominee
			g.open.Store(false)
			r.idles(20 * lease)
		},
		"SetEligible must allow it, too": func(s *scene) {
			var g gate
			r := s.run("a", nominated(&g))
			r.SetEligible(true)
			r.idles(10 * lease)
			r.SetEligible(false)
			g.set(true)
			r.idles(10 * lease)
			r.SetEligible(true)
			r.leads(4 * lease)
		},
	}.play(t)
}

func TestPriority(t *testing.T) {
	scenes{
		"a changed one moves the leadership": func(s *scene) {
			a, first := s.elect("a")
			b := s.run("b")
			time.Sleep(5 * lease)
			a.reconfigure(priority(-1))
			s.follows(b.leads(3*lease), first)
			if e := b.reports(tenure.EventAsking, nil); e.Term != first.Token() {
				s.Errorf("it asked for term %d", e.Term)
			}
			a.reconfigure(priority(5))
			a.leads(15 * lease)
		},
		"it also displaces a namesake": func(s *scene) {
			s.elect("a")
			s.elect("a", priority(1))
		},
		// However slow the store is.
		"a request ends with its campaign": func(s *scene) {
			s = s.over(memory.NewPolled())
			s.elect("a")
			f, far := s.faulty()
			f.Next(faults.Write, faults.HangBefore)
			asking := make(chan struct{})
			b := far.run("b", priority(1), onEvent(func(e tenure.Event) {
				if e.Kind == tenure.EventAsking {
					close(asking)
				}
			}))
			within(s.T, 3*lease, asking, "request")
			synctest.Wait()
			stopped := time.Now()
			_ = b.end()
			f.Wait()
			if took := time.Since(stopped); took > 0 {
				s.Errorf("the request went on for %v", took)
			}
		},
	}.play(t)
}
