package tenuretest

import (
	"context"
	"sync"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// rival is the stage's own candidate, and its eyes: it observes the election all the time. It leads
// without doing anything, and lets go when asked.
type rival struct {
	election *tenure.Election
	clock    *stageClock
	ctx      context.Context // its life
	stop     context.CancelFunc
	all      sync.WaitGroup
	called   chan struct{}

	mu    sync.Mutex
	seeks bool // it shall campaign, or does
}

func newRival(store driver.Store, election string) (*rival, error) {
	r := &rival{clock: newClock(), called: make(chan struct{}, 1)}
	e, err := tenure.New(store, election, tenure.Config{ID: Rival, Lease: lease, Clock: r.clock})
	if err != nil {
		return nil, err
	}
	r.election = e
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.all.Go(r.observe)
	r.all.Go(r.campaign)
	return r, nil
}

// leave takes the rival off the stage and waits until it is gone.
func (r *rival) leave() {
	r.stop()
	r.all.Wait()
}

func (r *rival) observe() {
	_, _ = r.election.Wait(r.ctx, func(tenure.Status) bool { return false })
}

// stand has the rival seek leadership, unless it does.
func (r *rival) stand() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seeks {
		r.seeks = true
		r.called <- struct{}{}
	}
}

func (r *rival) campaign() {
	for {
		select {
		case <-r.called:
			r.lead()
		case <-r.ctx.Done():
			return
		}
	}
}

// lead serves one term. Another candidate may ask it to hand over as well as the stage.
func (r *rival) lead() {
	term, err := r.election.Campaign(r.ctx)
	r.mu.Lock()
	r.seeks = false
	r.mu.Unlock()
	if err != nil {
		return // the stage closes
	}
	select {
	case <-term.Soft().Done():
	case <-r.ctx.Done():
	}
	_ = term.Resign(context.WithoutCancel(r.ctx)) // unconfirmed, the lease runs out
}

// ask asks the leader to hand over.
func (r *rival) ask(to string) error {
	return r.election.HandOver(r.ctx, to)
}
