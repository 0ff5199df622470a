package health

import (
	"context"
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

// lease is that of these elections. It is longer than the time in which three checks fail.
const lease = 4 * interval

// hall is an election with candidates that a test makes fit and unfit.
type hall struct {
	*testing.T
	store faults.Store
	works atomic.Int32 // how many candidates do the work of a leader
}

// candidate is one of them.
type candidate struct {
	*tenure.Election
	hall  *hall
	fit   atomic.Bool
	terms atomic.Int32 // that it has led
	// finishes is how long its work goes on after it was asked to finish, in nanoseconds.
	finishes atomic.Int64
	asked    atomic.Int32 // to finish because it is not eligible
	leave    func()
}

// inHalls runs a test in virtual time, over a store that pushes and over one that does not.
func inHalls(t *testing.T, test func(*hall)) {
	for name, open := range map[string]func() driver.Store{
		"pushed": func() driver.Store { return memory.New() }, "polled": func() driver.Store { return memory.NewPolled() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hall{T: t, store: faults.New(open(), 1, faults.Plan{})}
				t.Cleanup(h.store.Wait)
				test(h)
			})
		})
	}
}

// enter starts a candidate with a floor.
func (h *hall) enter(id string, fit bool) *candidate {
	h.Helper()
	e, err := tenure.New(h.store, "job", tenure.Config{ID: id, Lease: lease, FinishWithin: 10 * lease})
	if err != nil {
		h.Fatal(err)
	}
	c := &candidate{Election: e, hall: h}
	c.fit.Store(fit)
	floor := &Floor{Election: e, Lease: lease}
	floor.SetFit(false)
	checks := &Checker{
		Interval: interval, Failed: func(error) { floor.Look() }, Changed: func(cause error) { floor.SetFit(cause == nil) },
		Check: func(context.Context) error {
			if !c.fit.Load() {
				return errIll
			}
			return nil
		},
	}
	ctx, cancel := context.WithCancel(h.Context())
	var tasks sync.WaitGroup
	tasks.Go(func() { checks.Run(ctx) })
	tasks.Go(func() { _ = e.Run(ctx, c.work) })
	c.leave = func() { cancel(); tasks.Wait() }
	h.Cleanup(c.leave)
	return c
}

func (c *candidate) work(ctx context.Context, _ *tenure.Term) error {
	if c.hall.works.Add(1) > 1 {
		c.hall.Error("two candidates do the work")
	}
	defer c.hall.works.Add(-1)
	c.terms.Add(1)
	<-ctx.Done()
	if tenure.ReasonOf(context.Cause(ctx)) == tenure.ReasonOf(tenure.ErrIneligible) {
		c.asked.Add(1)
	}
	time.Sleep(time.Duration(c.finishes.Load()))
	return nil
}

// leads waits until a candidate does the work, in its nth term, and fails if that takes too long.
func (c *candidate) leads(n int32, within time.Duration) {
	c.hall.Helper()
	time.Sleep(within)
	synctest.Wait()
	if s := c.Status(); c.terms.Load() != n || s.Term == 0 {
		c.hall.Fatalf("%s has led %d terms, want %d, and it is %+v", c.ID(), c.terms.Load(), n, s)
	}
}

const (
	failing = (Fall + 1) * interval // until checks have failed often enough
	asking  = 5 * lease             // for a fit candidate to take over from an unfit leader
)

// TestFloorHandsOver: an unfit leader goes on until a fit candidate asks it to hand over. It is not
// asked to finish before.
func TestFloorHandsOver(t *testing.T) {
	inHalls(t, func(h *hall) {
		a := h.enter("a", true)
		a.leads(1, lease)
		b := h.enter("b", true)
		a.leads(1, 10*lease)
		a.fit.Store(false)
		b.leads(1, failing+asking)
		if n := a.asked.Load(); n != 0 {
			t.Errorf("it was asked to finish %d times as ineligible", n)
		}
		b.leads(1, 100*lease)
		a.fit.Store(true)
		b.leads(1, 100*lease) // fit candidates are equal again
	})
}

// TestFloorKeepsOneLeader: if all are unfit, the leader goes on in its term. The first one that is
// fit again takes over.
func TestFloorKeepsOneLeader(t *testing.T) {
	inHalls(t, func(h *hall) {
		a := h.enter("a", true)
		a.leads(1, lease)
		b, c := h.enter("b", true), h.enter("c", true)
		a.leads(1, 10*lease)
		for _, one := range []*candidate{a, b, c} {
			one.fit.Store(false)
		}
		a.leads(1, 100*lease)
		c.fit.Store(true)
		c.leads(1, 2*interval+asking)
		a.fit.Store(true)
		b.fit.Store(true)
		c.leads(1, 100*lease)
	})
}

// TestFloorFillsAVacancy: candidates that were never fit lead once none has led for a lease, also
// after the leader has left, and not at once.
func TestFloorFillsAVacancy(t *testing.T) {
	inHalls(t, func(h *hall) {
		a := h.enter("a", false)
		if time.Sleep(lease - interval); a.terms.Load() != 0 {
			t.Error("a is unfit, and led at once")
		}
		a.leads(1, failing+2*lease)
		b, c := h.enter("b", false), h.enter("c", true)
		c.leads(1, lease+asking)
		c.leads(1, 10*lease)
		c.leave()
		if time.Sleep(lease - interval); a.terms.Load() != 1 || b.terms.Load() != 0 {
			t.Error("a and b are unfit, and one of them led at once")
		}
		a.leave()
		b.leads(1, failing+3*lease)
	})
}

// TestFloorPrefersTheFit: an unfit candidate does not claim beside a fit one, also after an outage
// of the store that was longer than a lease.
func TestFloorPrefersTheFit(t *testing.T) {
	inHalls(t, func(h *hall) {
		all := []*candidate{h.enter("a", true), h.enter("b", true)}
		unfit := []*candidate{h.enter("c", false), h.enter("d", false), h.enter("e", false)}
		time.Sleep(10 * lease)
		for range 5 {
			leader := all[0]
			if leader.Status().Term == 0 {
				leader = all[1]
			}
			if err := leader.HandOver(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * lease)
			h.store.Partition()
			time.Sleep(10 * lease)
			h.store.Heal()
			time.Sleep(10 * lease)
		}
		for _, c := range unfit {
			if n := c.terms.Load(); n != 0 {
				t.Errorf("%s is unfit, and led %d terms", c.ID(), n)
			}
		}
		if n := all[0].terms.Load() + all[1].terms.Load(); n != 11 {
			t.Errorf("the fit ones led %d terms, want 11", n)
		}
	})
}

// TestFloorAfterALostSuccessor: the candidate that has asked becomes unfit before the leader has
// finished. Then one of them leads soon, and goes on.
func TestFloorAfterALostSuccessor(t *testing.T) {
	inHalls(t, func(h *hall) {
		a := h.enter("a", true)
		a.leads(1, lease)
		b := h.enter("b", true)
		a.leads(1, 10*lease)
		const finishes = failing + 2*lease
		a.finishes.Store(int64(finishes))
		a.fit.Store(false)
		for range int((failing + asking) / time.Second) {
			if time.Sleep(time.Second); a.Status().State == tenure.StateLeaving {
				break
			}
		}
		b.fit.Store(false)
		time.Sleep(finishes + 3*lease)
		if n := a.terms.Load() + b.terms.Load(); n != 2 {
			t.Fatalf("a led %d terms, b %d", a.terms.Load(), b.terms.Load())
		}
		if b.terms.Load() == 1 {
			a = b
		}
		a.leads(a.terms.Load(), 100*lease)
	})
}

// bounded is a store whose longest lease changes, as a bucket's does.
type bounded struct {
	*memory.Polled
	most atomic.Int64
}

func (b *bounded) MaxLease() time.Duration { return time.Duration(b.most.Load()) }

// TestFloorWithoutPriorities: a leader whose priority cannot be lowered steps aside.
func TestFloorWithoutPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &bounded{Polled: memory.NewPolled()}
		store.most.Store(int64(lease))
		h := &hall{T: t}
		e, err := tenure.New(store, "job", tenure.Config{ID: "a", Lease: lease})
		if err != nil {
			t.Fatal(err)
		}
		c := &candidate{Election: e, hall: h}
		floor := &Floor{Election: e, Lease: lease}
		floor.SetFit(true)
		ctx, cancel := context.WithCancel(t.Context())
		var task sync.WaitGroup
		task.Go(func() { _ = e.Run(ctx, c.work) })
		c.leads(1, lease)
		store.most.Store(int64(lease - 1))
		floor.SetFit(false)
		time.Sleep(lease)
		if s := e.Status(); c.asked.Load() != 1 || s.Term != 0 || s.Eligible {
			t.Errorf("it was asked to finish %d times, and is %+v", c.asked.Load(), s)
		}
		cancel()
		task.Wait()
	})
}
