package election

import (
	"context"
	"runtime"
	"time"

	"github.com/tenure-go/tenure"
)

// attendance is one Start. All callbacks are called in its goroutine.
type attendance struct {
	*Elector
	ctx context.Context
	won chan *holding
}

// holding is a term that the program knows of.
type holding struct {
	term      *tenure.Term
	over      chan struct{} // closed when it was told the end
	abandoned bool          // or never will be: a callback has not returned
}

// lead is the work of a leader: to have the program told. It returns when that is done, so nothing
// is released before.
func (a *attendance) lead(ctx context.Context, t *tenure.Term) error {
	h := &holding{term: t, over: make(chan struct{})}
	select {
	case a.won <- h:
	case <-ctx.Done():
		return nil // the program was not called
	}
	<-h.over
	if h.abandoned {
		runtime.Goexit() // work of the program may still run
	}
	return nil
}

// attend calls the callbacks that are due, until the election is over.
func (a *attendance) attend(done <-chan error) error {
	r := a.rounds()
	defer r.stop()
	defer a.inspect()()
	for {
		select {
		case <-r.due():
			r.campaign()
		case <-r.changed:
			r.look(false)
		case h := <-a.won:
			a.reign(h)
			r.begin()
		case err := <-done:
			return err
		}
	}
}

// reign calls the callbacks of one term.
func (a *attendance) reign(h *holding) {
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

// serve returns when the term is over or this candidate is to leave. It reports whether the program
// was told of the term.
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

// leastGain is more than the time between two looks at the clock, and less than a renewal gains.
const leastGain = 10 * time.Millisecond

func deadline(t *tenure.Term) time.Time { return time.Now().Add(t.Remaining()) }
