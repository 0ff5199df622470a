package tenure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// HandOver asks the leader, wherever it is, to finish its work and hand over: to the candidate of the given ID, or to
// anybody if it is empty. It returns when the request is in the store, not when leadership has moved; Wait tells that.
// A request that was there already is as good: at most one is made between two renewals.
//
// It returns ErrNoLeader if nobody leads, an error that wraps driver.ErrDenied for want of rights, ctx's error, or the
// store's if the request could not be made in a few attempts.
func (e *Election) HandOver(ctx context.Context, to string) error {
	if err := record.CheckName("successor", to); err != nil {
		return fmt.Errorf("tenure: %w", err)
	}
	if e.member.askSelf(to) {
		return nil
	}
	err := e.member.insist(ctx, to, 0)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, ErrNoLeader) {
		return err
	}
	return e.member.wrap("hand-over", err)
}

// handOverAttempts bounds the race with the leader's own renewals, which one attempt in many loses.
const handOverAttempts = 5

// askSelf spares the store where this very process leads.
func (m *member) askSelf(to string) (leads bool) {
	m.step(func(now Reading) {
		if m.term == nil {
			return
		}
		m.machine.HandOver(now, to, m.id)
		leads = m.machine.Asked() != nil
	})
	return leads
}

// aspire asks the leader of a term to hand over to this member, whose priority is higher, for as long as it campaigns. The
// machine has it asked again when that is due.
func (m *member) aspire(campaign context.Context, term uint64, within time.Duration) {
	ctx, cancel := context.WithTimeout(campaign, within)
	defer cancel()
	err := m.insist(ctx, m.id, term)
	if err != nil && campaign.Err() == nil && !errors.Is(err, ErrNoLeader) {
		m.step(func(Reading) { m.report(EventTrouble, m.wrap("hand-over", err)) })
	}
}

// insist requests until that is done, in a few attempts.
func (m *member) insist(ctx context.Context, to string, term uint64) (err error) {
	for range handOverAttempts {
		var done bool
		if done, err = m.request(ctx, to, term); done || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// request adds the wish to the holder's record, if it is of the given term or that is 0, and
// copies every other byte of it, so that nobody takes it for a renewal. After a lost answer the
// next attempt finds the request there.
func (m *member) request(ctx context.Context, to string, term uint64) (done bool, err error) {
	final := false // the record itself says that there is no more to try
	err = m.amend(ctx, func(entry driver.Entry) ([]byte, error) {
		final = true
		if entry.Absent() {
			return nil, ErrNoLeader
		}
		r, err := record.Decode(entry.Value)
		if err != nil {
			return nil, err
		}
		if !r.Held() || term != 0 && r.Term != term {
			return nil, ErrNoLeader
		}
		value, err := record.AddRequest(entry.Value, record.Request{Term: r.Term, To: to, By: m.id})
		final = err != nil
		return value, err
	})
	if errors.Is(err, record.ErrRequested) {
		return true, nil
	}
	return final || err == nil || errors.Is(err, driver.ErrDenied), err
}
