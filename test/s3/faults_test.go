package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

const faultyLease = 2 * time.Second

// faultPlans returns a plan with all faults, a plan of a server that refuses each quoted ETag, and
// a plan for each single fault. Nearly every third request fails.
func faultPlans() []s3fake.Plan {
	all := []s3fake.Fault{
		s3fake.Contended, s3fake.TooMany, s3fake.Broken, s3fake.BrokenLate, s3fake.LoseRequest, s3fake.LoseAnswer,
		s3fake.DelayBefore, s3fake.DelayAfter, s3fake.Refuse, s3fake.RefuseQuoted, s3fake.Missing,
	}
	plans := []s3fake.Plan{{Chances: map[s3fake.Fault]float64{}}, {Chances: map[s3fake.Fault]float64{s3fake.RefuseQuoted: 1}}}
	for _, f := range all {
		plans[0].Chances[f] = 0.3 / float64(len(all))
		plans = append(plans, s3fake.Plan{Chances: map[s3fake.Fault]float64{f: 0.3}})
	}
	for i := range plans {
		plans[i].MaxDelay = faultyLease / 4
	}
	return plans
}

// nameOf returns a short name, which is the same in each run except for the seed.
func nameOf(p s3fake.Plan, seed uint64) string {
	name := "all"
	for f := range p.Chances {
		if len(p.Chances) == 1 {
			name = f.String()
		}
	}
	return fmt.Sprintf("%s,seed=%d", name, seed)
}

// TestFaults holds an election on each of many servers, which fail in 30 % of requests. The seed
// decides which requests fail.
func TestFaults(t *testing.T) {
	var struck atomic.Int64
	plans := faultPlans()
	const terms = 4
	t.Run("plans", func(t *testing.T) { // it ends when all tests in it have ended
		for _, p := range plans {
			seed := rand.Uint64()
			t.Run(nameOf(p, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					server := startFake(t, new(pipenet.Network), seed, p)
					f := &faulty{TB: t, terms: terms, server: server, clock: clock.Standard{}}
					r := startReferee(t)
					defer r.stop()
					f.play(r.enter)
					struck.Add(f.struck(p))
				})
			})
		}
	})
	provesEnough(t, &struck, terms*len(plans))
}

// provesEnough requires at least one fault per term, and some more.
func provesEnough(t *testing.T, struck *atomic.Int64, terms int) {
	if n := struck.Load(); n < int64(5*terms/4) {
		t.Errorf("%d faults: this run proves little", n)
	}
}

// faulty is an election on a server that fails.
type faulty struct {
	testing.TB
	terms  int
	server *s3fake.Server
	clock  clock.Clock

	mu     sync.Mutex
	begun  int
	latest chan<- struct{} // lets the leader of the last term leave
	grown  chan struct{}   // closed at the next term
}

// onTerm returns the function that is called with each term of a candidate.
type onTerm func(id string) (enter func(*tenure.Term))

// play runs three candidates. All leaders of this many terms, except the last, leave gracefully
// after a while.
func (f *faulty) play(w onTerm) {
	f.grown = make(chan struct{})
	var leave []func()
	for i := range 3 {
		leave = append(leave, f.join(fmt.Sprintf("c%d", i), w))
	}
	for n := range f.terms {
		latest := f.until(n + 1)
		time.Sleep(faultyLease * 5 / 4) // by then it has renewed, or the term is lost
		select {
		case latest <- struct{}{}:
		default: // it lost the term
		}
	}
	for _, l := range leave {
		l()
	}
}

func (f *faulty) struck(p s3fake.Plan) (n int64) {
	for fault := range p.Chances {
		n += int64(f.server.Struck(fault))
	}
	f.Logf("%d faults in %d reads and %d writes", n, f.server.Requests("GET"), f.server.Requests("PUT"))
	return n
}

// join lets a candidate campaign until it leaves.
func (f *faulty) join(id string, w onTerm) (leave func()) {
	store, err := s3object.New(f.server.Client(), fakeBucket)
	if err != nil {
		f.Errorf("%v", err)
		return func() {}
	}
	e, err := tenure.New(store, "billing", tenure.Config{
		ID: id, Lease: faultyLease, OnEvent: f.onEvent, Clock: f.clock,
	})
	if err != nil {
		f.Errorf("%v", err)
		return func() {}
	}
	enter := w(id)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			f.lead(ctx, e, enter)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// lead takes part until play has ended a term of this candidate.
func (f *faulty) lead(ctx context.Context, e *tenure.Election, enter func(*tenure.Term)) {
	err := e.Run(ctx, func(soft context.Context, term *tenure.Term) error {
		enter(term)
		own := f.enter()
		select {
		case <-own:
		case <-soft.Done():
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		f.Errorf("Run of %s: %v", e.ID(), err)
	}
}

// onEvent: a term may end because its time is over, but never because a fault is mistaken for
// another candidate's write.
func (f *faulty) onEvent(e tenure.Event) {
	switch {
	case e.Kind == tenure.EventLost && !errors.Is(e.Cause, tenure.ErrExpired):
		f.Errorf("%s lost term %d before its deadline: %v", e.ID, e.Term, e.Cause)
	case e.Kind == tenure.EventAlarm:
		f.Errorf("alarm at %s: %v", e.ID, e.Cause)
	}
}

func (f *faulty) enter() <-chan struct{} {
	own := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	f.latest = own
	close(f.grown)
	f.grown = make(chan struct{})
	return own
}

// until waits for this many terms, and returns the channel that ends the last one.
func (f *faulty) until(terms int) chan<- struct{} {
	for {
		f.mu.Lock()
		n, latest, grown := f.begun, f.latest, f.grown
		f.mu.Unlock()
		if n >= terms {
			return latest
		}
		<-grown
	}
}

// referee checks the terms of all candidates at one instant of virtual time, again and again.
type referee struct {
	testing.TB
	ends chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	terms []claim
}

// claim is a term of a candidate.
type claim struct {
	who  string
	term *tenure.Term
}

func startReferee(t testing.TB) *referee {
	r := &referee{TB: t, ends: make(chan struct{})}
	r.done.Go(func() {
		for {
			select {
			case <-r.ends:
				return
			case <-time.After(5 * time.Millisecond):
				r.mu.Lock()
				r.judge()
				r.mu.Unlock()
			}
		}
	})
	return r
}

func (r *referee) stop() {
	close(r.ends)
	r.done.Wait()
}

// enter requires that each term has a higher token than all before, and that no earlier term is
// valid.
func (r *referee) enter(id string) func(*tenure.Term) {
	return func(t *tenure.Term) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, c := range r.terms {
			if c.term.Token() >= t.Token() {
				r.Errorf("%s is elected with token %d after %s with %d", id, t.Token(), c.who, c.term.Token())
			}
		}
		r.terms = append(r.terms, claim{id, t})
		r.judge()
	}
}

// judge must be called with the lock held.
func (r *referee) judge() {
	if len(r.terms) == 0 {
		return
	}
	last := r.terms[len(r.terms)-1]
	for _, c := range r.terms[:len(r.terms)-1] {
		if c.term.Err() == nil {
			r.Errorf("%s may act by term %d while %s has term %d",
				c.who, c.term.Token(), last.who, last.term.Token())
		}
	}
}
