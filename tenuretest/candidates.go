package tenuretest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// candidate is a candidate of the test, with its own connection to the store and its own clock.
type candidate struct {
	store   faults.Store
	watches *watchCounter
	clock   *stageClock
}

func newCandidate(store *memory.Store, election string) *candidate {
	w := &watchCounter{Store: store, election: election}
	return &candidate{store: faults.New(w, 0, faults.Plan{}), watches: w, clock: newClock()}
}

// follows reports whether the candidate watches the election, and so would claim it after a
// hand-over.
func (c *candidate) follows() bool { return c.watches.count.Load() > 0 }

// suspend makes the candidate behave as if its process was suspended for longer than any lease.
// Until it wakes up it reaches no store; its calls fail at once, so that none still hangs
// afterwards.
func (c *candidate) suspend() (wake func()) {
	c.store.SetPlan(faults.Plan{Chances: faults.Chances{faults.Fail: 1}})
	c.clock.suspend()
	return func() {
		c.clock.suspend() // fires timers set by a step that had read the clock before
		c.store.SetPlan(faults.Plan{})
	}
}

// watchCounter is the store, and counts the watches of the election.
type watchCounter struct {
	*memory.Store
	election string
	count    atomic.Int64
}

// Watch calls the store and counts the watch until it is stopped.
func (w *watchCounter) Watch(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
	stop, err := w.Store.Watch(ctx, key, see)
	if err != nil || key != w.election {
		return stop, err
	}
	w.count.Add(1)
	return sync.OnceFunc(func() {
		w.count.Add(-1)
		stop()
	}), nil
}

// rival is the stage's own candidate. It observes the election all the time, also for the stage. It
// leads without any work, and resigns when it is asked to.
type rival struct {
	election   *tenure.Election
	clock      *stageClock
	ctx        context.Context // ends when the stage closes
	stop       context.CancelFunc
	goroutines sync.WaitGroup
	start      chan struct{}
	changed    chan struct{} // receives a value after each change of the election's status

	mu      sync.Mutex
	seeking bool // it campaigns or leads, or is about to
}

func newRival(store driver.Store, election string) (*rival, error) {
	r := &rival{clock: newClock(), start: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	e, err := tenure.New(store, election, tenure.Config{ID: Rival, Lease: lease, Clock: r.clock})
	if err != nil {
		return nil, err
	}
	r.election = e
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.goroutines.Go(r.observe)
	r.goroutines.Go(r.campaign)
	return r, nil
}

// close ends the rival and waits for its goroutines.
func (r *rival) close() {
	r.stop()
	r.goroutines.Wait()
}

func (r *rival) observe() {
	for _, err := range r.election.Watch(r.ctx) {
		if err != nil {
			return // never: the store in memory denies nothing
		}
		select {
		case r.changed <- struct{}{}:
		default: // the stage has not yet seen the change before
		}
	}
}

// seekLeadership makes the rival campaign, unless it already campaigns or leads.
func (r *rival) seekLeadership() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seeking {
		r.seeking = true
		r.start <- struct{}{}
	}
}

func (r *rival) campaign() {
	for {
		select {
		case <-r.start:
			r.lead()
		case <-r.ctx.Done():
			return
		}
	}
}

// lead serves one term. Another candidate may ask it to hand over as well as the stage.
func (r *rival) lead() {
	term, err := r.election.Campaign(r.ctx)
	if err != nil {
		return // the stage closes
	}
	select {
	case <-term.Context().Done():
	case <-r.ctx.Done():
	}
	r.mu.Lock()
	r.seeking = false // before the release, after which the stage may see another leader
	r.mu.Unlock()
	_ = term.Resign(context.WithoutCancel(r.ctx)) // without a release the lease expires
}

// expireLease sets the rival's clock forward, so that for the rival the lease of a suspended leader
// expires. It does so once for each write of that leader, because a renewal that was under way may
// still arrive. To do it again could end the rival's own term. It takes and returns the time at
// which the rival saw the write whose lease it let expire.
func (r *rival) expireLease(suspended tenure.Leader, expired time.Time) time.Time {
	seen := r.election.Status().Record
	if seen.Kind != admin.Held || seen.Term != suspended.Term || seen.Seen.Equal(expired) {
		r.clock.fireTimers() // for timers set by a step that had read the clock before
		return expired
	}
	r.clock.skipLongestLease()
	return seen.Seen
}

// handOver asks the leader to hand over.
func (r *rival) handOver(to string) error {
	return r.election.HandOver(r.ctx, to)
}
