package agent

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/tenure-go/tenure/metrics"
)

// Campaign is the part of one client in an election, at one moment.
type Campaign struct {
	Election, ID string
	// Token is that of the term in which the client may act; 0: it may not.
	Token uint64
	// Finish reports whether the client was asked to finish.
	Finish bool
}

// Watch yields the campaigns of this agent, in the order of their elections and IDs: at once and
// after each change, until ctx ends or the loop is left. A slow loop sees the latest state, not
// each. A state that is kept grants nothing: it is out of date when the agent or its machine stops.
func (a *Agent) Watch(ctx context.Context) iter.Seq[[]Campaign] {
	return func(yield func([]Campaign) bool) {
		for {
			a.mu.Lock()
			changed := a.changed
			a.mu.Unlock()
			if !yield(a.states()) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (a *Agent) states() []Campaign {
	campaigns := a.allCampaigns()
	all := make([]Campaign, 0, len(campaigns))
	for _, c := range campaigns {
		one := Campaign{Election: c.election.Name(), ID: c.election.ID()}
		s := c.state()
		if one.Finish = s.finish; s.mayAct(0) {
			one.Token = s.token
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Campaign) int {
		return cmp.Or(cmp.Compare(a.Election, b.Election), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func (a *Agent) noteChange() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noteChangeLocked()
}

func (a *Agent) noteChangeLocked() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// measure returns the state for the metrics.
func (a *Agent) measure() metrics.AgentState {
	all := a.states()
	s := metrics.AgentState{Campaigns: len(all), MissedHeartbeats: a.missed.Load()}
	for _, c := range all {
		if c.Token != 0 {
			s.Leading++
		}
	}
	return s
}
