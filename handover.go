package tenure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/update"
)

// HandOver asks the leader, in any process, to finish its work and hand over: to the candidate
// whose ID is given, or to any candidate if that is empty. It returns when the request is in the
// store, not when leadership has moved: use Wait for that. The record holds one request until the
// leader renews. If it holds one already, even for another successor, that one counts, and HandOver
// returns nil. If this process itself leads, HandOver needs no store call, and its last call names
// the successor. If the named candidate leads already, HandOver changes nothing and returns nil.
//
// It returns ErrNoLeader if the record names no leader. A leader whose lease has expired is still
// named. It returns an error that wraps ErrForeign or ErrMalformed if the key holds no sound
// record, one that wraps ErrDenied if rights are missing, ctx's cause, or the store's error after
// five attempts, each of which gets as long as one store call of an election. An ID that has more
// than 256 bytes or is not UTF-8 is an error.
func (e *Election) HandOver(ctx context.Context, to string) error {
	if err := record.CheckName(to); err != nil {
		return fmt.Errorf("tenure: successor %w", err)
	}
	if e.runner.handOverOwn(to) {
		return nil
	}
	err := e.runner.retryRequest(ctx, to, 0)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, ErrNoLeader) {
		return err
	}
	return e.runner.wrap("hand-over", err)
}

// handOverAttempts bounds the race with the leader's own renewals, which one attempt in many loses.
const handOverAttempts = 5

// handOverOwn asks this process to hand over if it leads, without a store call.
func (m *runner) handOverOwn(to string) (leads bool) {
	m.step(func(now clock.Reading) {
		if m.term == nil {
			return
		}
		if to == m.id && m.machine.Holds(now) {
			leads = true
			return
		}
		m.machine.HandOver(now, to, m.id)
		leads = m.machine.Asked() != nil
	})
	return leads
}

// requestHandOver asks the leader of a term to hand over to this member, whose priority is higher,
// as long as it campaigns. The machine repeats it when that is due.
func (m *runner) requestHandOver(campaign context.Context, term uint64, within time.Duration) {
	ctx, cancel := context.WithTimeout(campaign, within)
	defer cancel()
	err := m.retryRequest(ctx, m.id, term)
	if err != nil && campaign.Err() == nil && !errors.Is(err, ErrNoLeader) {
		m.step(func(clock.Reading) { m.report(EventTrouble, m.wrap("hand-over", err)) })
	}
}

// retryRequest makes the request, in a few attempts.
func (m *runner) retryRequest(ctx context.Context, to string, term uint64) (err error) {
	for range handOverAttempts {
		var done bool
		if done, err = m.request(ctx, to, term); done || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// request adds the request to the record by one compare-and-swap. It reports done where another
// attempt would change nothing. After a lost answer the next attempt finds the request there.
func (m *runner) request(ctx context.Context, to string, term uint64) (done bool, err error) {
	err = update.Once(ctx, m.store, m.clock, m.key, m.attemptTimeout(), func(entry driver.Entry) (value []byte, err error) {
		value, err = m.withRequest(entry, to, term)
		done = err != nil
		return value, err
	})
	if errors.Is(err, record.ErrRequested) {
		return true, nil
	}
	return done || err == nil || errors.Is(err, driver.ErrDenied), err
}

// withRequest returns the holder's record with the request added and every other byte copied, so
// that no member takes it for a renewal. The record must be of the given term, unless that is 0. It
// returns ErrRequested if there is nothing to ask for.
func (m *runner) withRequest(entry driver.Entry, to string, term uint64) ([]byte, error) {
	cell := protocol.Credible(protocol.Decode(entry))
	if err := cell.Fault(); err != nil {
		return nil, err
	}
	r := &cell.Record
	if cell.Kind == protocol.Absent || !r.Held() || term != 0 && r.Term != term {
		return nil, ErrNoLeader
	}
	if m.names(to, r) {
		return nil, record.ErrRequested
	}
	return record.AddRequest(entry.Value, record.Request{Term: r.Term, To: to, By: m.id})
}

// names reports whether to is the holder of r. Two processes may have the same ID by mistake: one
// that names its own means itself, so a namesake of it is asked.
func (m *runner) names(to string, r *record.Record) bool {
	if to == m.id {
		return r.Incarnation == m.machine.Incarnation()
	}
	return to == r.LeaderID
}

// attemptTimeout is the time that one operation is given.
func (m *runner) attemptTimeout() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings.machine.Attempt()
}
