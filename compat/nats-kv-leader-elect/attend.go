package election

import (
	"context"
	"runtime"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/timing"
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
	r := &campaigns{attendance: a, timer: time.NewTimer(0)}
	defer r.timer.Stop()
	r.begin()
	changed, stop := a.statusChanges()
	defer stop()
	defer a.inspect()()
	for {
		select {
		case <-r.timer.C:
			r.campaign()
		case <-changed:
			r.look(false)
		case h := <-a.won:
			a.serveTerm(h)
			r.begin()
		case err := <-done:
			return err
		}
	}
}

// statusChanges returns a channel that receives a value after each change of the election's status,
// and never receives without a back-off. Stop ends the goroutine that sends.
func (a *attendance) statusChanges() (changed <-chan struct{}, stop func()) {
	if a.backoff == nil {
		return nil, func() {}
	}
	c := make(chan struct{}, 1)
	return c, inBackground(a.ctx, func(ctx context.Context) {
		for _, err := range a.election.Watch(ctx) {
			if err != nil {
				return // Start returns it
			}
			select {
			case c <- struct{}{}:
			default: // the receiver has not yet seen the change before
			}
		}
	})
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
		renewed := timing.Renewed(t) // or sent a renewal, which changes nothing yet
		if now := deadline(t); now.After(until.Add(leastGain)) {
			until = now
			a.onCampaign(LeaderState)
		}
		select {
		case <-t.Context().Done():
			return true
		case <-renewed:
		}
	}
}

// leastGain is more than the time between two reads of the clock, and less than a renewal adds to
// the deadline.
const leastGain = 10 * time.Millisecond

func deadline(t *tenure.Term) time.Time { return time.Now().Add(t.Remaining()) }

// Backoff says how long a candidate that does not lead waits between two campaigns.
type Backoff interface {
	// Duration returns the n-th wait, n from 0.
	Duration(n int) time.Duration
}

// leastWait keeps a back-off of 0 from looping without a pause.
const leastWait = 10 * time.Millisecond

// campaigns are those of one Start, while this candidate does not lead.
//
// A candidate with a back-off becomes eligible by a campaign that finds the last leader's lease
// over, if the store has answered for a whole lease before. It stays eligible until a candidate
// leads again. It is eligible without a campaign if there is no such lease, because it was released
// or the record is gone, and also while it has seen no other leader since it started or led last.
type campaigns struct {
	*attendance
	timer  *time.Timer
	n      int
	eager  bool      // no other candidate has led since this one started, or led last
	trying bool      // eligible
	failed time.Time // when the store was last known not to answer
}

// begin starts over with a campaign at once, so that OnCampaign is called before the candidate can
// be elected.
func (r *campaigns) begin() {
	r.n, r.eager, r.trying = 0, true, true
	r.look(false)
	r.campaign()
}

// campaign makes one campaign, and sets the timer for the next one.
func (r *campaigns) campaign() {
	if r.ctx.Err() != nil {
		return
	}
	r.onCampaign(CandidateState)
	r.timer.Reset(r.wait())
	r.n++
	r.look(true)
}

func (r *campaigns) wait() time.Duration {
	if r.backoff == nil {
		return interval(r.lease)
	}
	return max(r.backoff.Duration(r.n), leastWait)
}

// look decides whether this candidate is eligible now; due means that a campaign is due. A
// candidate that was elected stays eligible.
func (r *campaigns) look(due bool) {
	if r.backoff == nil {
		return
	}
	s := r.election.Status()
	if s.State != tenure.StateCandidate {
		return
	}
	if s.Failures > 0 {
		r.failed = time.Now()
	}
	switch {
	case s.Leader.Exists():
		r.eager, r.trying = false, false
	case r.eager, s.Known && s.Record.Kind != admin.Held, due && time.Since(r.failed) >= r.lease:
		r.trying = true // after an outage the last leader has a lease to come back in
	}
	r.election.SetEligible(r.trying)
}
