package election

import (
	"context"
	"runtime"
	"time"

	"github.com/tenure-go/tenure"
)

// attendance is one call of Start. OnWon, OnLost and OnCampaign are called in its goroutine.
type attendance struct {
	*Elector
	ctx context.Context
	won chan *holding
}

// holding is a term that was won.
type holding struct {
	term      *tenure.Term
	over      chan struct{} // closed when the callbacks of the term have returned
	abandoned bool          // a callback panicked, so it never returned
}

// lead is a leader's work: it makes Start call OnWon and OnLost. It returns when OnLost has
// returned, so the lease is not released before.
func (a *attendance) lead(ctx context.Context, t *tenure.Term) error {
	h := &holding{term: t, over: make(chan struct{})}
	select {
	case a.won <- h:
	case <-ctx.Done():
		return nil // no callback was called
	}
	<-h.over
	if h.abandoned {
		runtime.Goexit() // work of the program may still run
	}
	return nil
}

// attend calls the callbacks that are due, until the election is over.
func (a *attendance) attend(done <-chan error) error {
	r := a.newCampaigns()
	defer r.stop()
	defer a.inspect()()
	for {
		select {
		case <-r.due():
			r.campaign()
		case <-r.changed:
			r.look(false)
		case h := <-a.won:
			a.serveTerm(h)
			r.begin()
		case err := <-done:
			return err
		}
	}
}

// serveTerm calls the callbacks of one term.
func (a *attendance) serveTerm(h *holding) {
	h.abandoned = true
	defer func() {
		a.hold(nil)
		close(h.over)
	}()
	if a.serve(h.term) {
		a.onLost()
	}
	h.abandoned = false
}

// serve calls OnWon, and OnCampaign after each renewal, until the term is over or this candidate
// should stop leading. It reports whether it called OnWon.
func (a *attendance) serve(t *tenure.Term) bool {
	if !leads(t) {
		return false
	}
	a.hold(t)
	a.onWon()
	for until := deadline(t); ; {
		renewed := t.Renewed() // or sent a renewal, which changes nothing yet
		if now := deadline(t); now.After(until.Add(leastGain)) {
			until = now
			a.onCampaign(LeaderState)
		}
		select {
		case <-t.Soft().Done():
			return true
		case <-renewed:
		}
	}
}

// leastGain is more than the time between two reads of the clock, and less than a renewal adds to
// the deadline.
const leastGain = 10 * time.Millisecond

func deadline(t *tenure.Term) time.Time { return time.Now().Add(t.Remaining()) }
