package s3lect

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
)

// hookWithin is how long the context of OnLoseLeadership lasts.
const hookWithin = 5 * time.Second

// lead is a leader's work: it calls the hooks. Its context ends when leadership should end, or has
// ended.
func (e *S3Elector) lead(ctx context.Context, t *tenure.Term) error {
	e.set(func() { e.term, e.elected = t, time.Now() })
	if hook := e.config().OnAcquireLeadership; hook != nil {
		if err := hook(ctx); err != nil {
			e.log.Error("s3lect: OnAcquireLeadership failed; resigning", "error", err)
			e.finish(ctx, true)
			return fmt.Errorf("%w: %w", tenure.ErrDecline, err)
		}
	}
	e.set(func() { e.ready = true })
	<-ctx.Done()
	e.finish(ctx, false)
	return nil
}

// finish returns when the hook has returned: only then may the lease be released.
func (e *S3Elector) finish(ctx context.Context, failed bool) {
	var hook func(context.Context) error
	e.set(func() {
		e.term, e.ready = nil, false
		if failed {
			e.elected = time.Time{}
		}
		hook = e.cfg.OnLoseLeadership
	})
	if hook == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookWithin)
	defer cancel()
	if err := hook(ctx); err != nil {
		e.log.Warn("s3lect: OnLoseLeadership failed", "error", err)
	}
}

// IsLeader reports whether this process leads: it was elected, its lease is valid at this moment by
// its own clock, and it is not about to give up. It is true already while OnAcquireLeadership runs.
func (e *S3Elector) IsLeader() bool {
	e.mu.Lock()
	t := e.term
	e.mu.Unlock()
	return leads(t)
}

func leads(t *tenure.Term) bool {
	return t != nil && t.Context().Err() == nil && t.Err() == nil
}

// LeaderID returns the ServerID of the leader as far as this process knows; empty while there is no
// leader.
func (e *S3Elector) LeaderID() string { return e.election.Status().Leader.ID }

// GetLeadershipStatus returns a snapshot. It is never nil.
func (e *S3Elector) GetLeadershipStatus() *LeadershipStatus {
	s := e.election.Status()
	e.mu.Lock()
	status := &LeadershipStatus{
		ServerID: e.cfg.ServerID, LockfilePath: e.cfg.LockfilePath, LastElectionTime: e.elected,
		LeaderID: s.Leader.ID, LeaderAddr: s.Leader.Address, ConsecutiveFails: s.Failures,
	}
	t := e.term
	e.mu.Unlock()
	status.IsLeader = leads(t)
	if s.Leader.Exists() {
		status.LeaderLastSeen = s.LastContact
	}
	return status
}

// WaitForLeadership returns nil once this process leads and OnAcquireLeadership has succeeded. It
// returns ctx's error if ctx ends first, and another error if the elector has stopped.
func (e *S3Elector) WaitForLeadership(ctx context.Context) error {
	for {
		e.mu.Lock()
		t, ready, changed := e.term, e.ready, e.changed
		e.mu.Unlock()
		if ready && leads(t) {
			return nil
		}
		select {
		case <-e.done:
			return errStopped
		default:
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lookEvery is how often WaitForNextElection checks the status: Election.Watch yields no renewals.
const lookEvery = 100 * time.Millisecond

// WaitForNextElection returns the status once this process has seen the lockfile's state at a time
// after since; with the zero time, at any time. It checks this every 100 ms. It returns ctx's error
// if ctx ends first, and another error if the elector has stopped.
func (e *S3Elector) WaitForNextElection(ctx context.Context, since time.Time) (*LeadershipStatus, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if s := e.election.Status(); s.Known && s.LastContact.After(since) {
			return e.GetLeadershipStatus(), nil
		}
		select {
		case <-tick.C:
		case <-e.done:
			return nil, errStopped
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
