package election

import (
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
)

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
	// closed at the next change of the election's status; nil without a back-off
	changed <-chan struct{}
}

func (a *attendance) newCampaigns() *campaigns {
	r := &campaigns{attendance: a, timer: time.NewTimer(0)}
	r.begin()
	return r
}

func (r *campaigns) stop() { r.timer.Stop() }

func (r *campaigns) due() <-chan time.Time { return r.timer.C }

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
	changed := r.election.Changed()
	s := r.election.Status()
	r.changed = changed
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
