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
// store, not when leadership has moved: use Wait for that.
//
// If a candidate is named, the leader goes on until that candidate has accepted. A candidate
// accepts as soon as it sees the request, if it campaigns, is eligible and reaches the store. If
// none of that name accepts within two leases, the request is void, and nothing has changed.
// The same request again does not prolong that time. Candidates of releases before this rule accept
// nothing: see ForceHandOver.
//
// A leader obeys one request in a term, and its next renewal removes it from the record. If the
// record holds a request already, even for another successor, HandOver keeps that request and
// returns nil; but it replaces one that was not accepted yet. If this process itself leads, and no
// candidate is named, HandOver needs no store call. If the named candidate leads already, HandOver
// changes nothing and returns nil. While the store marks the record as unproven (driver.Entry),
// HandOver waits until the leader has renewed, for about the lease in the record at most.
//
// An attempt that fails is repeated. HandOver asks only the leader that its first read has shown:
// if that leader has left when it reads again, perhaps as asked, it returns nil.
//
// It returns
//
//   - ErrNoLeader if the record names no leader. A leader whose lease has expired is still named;
//   - an error that wraps a *StoreError if the key holds foreign bytes or a malformed record;
//   - an error that wraps ErrDenied if this process lacks the right to read or write;
//   - one that wraps driver.ErrUnfit if the store was seen to be unfit for elections;
//   - an error that says so if HandOver waits for a renewal and none comes before the wait or ctx
//     ends;
//   - ctx's cause if ctx ends in any other case;
//   - the store's error after five attempts, each with the time limit of one store call of an
//     election;
//   - an error if the ID has more than 256 bytes or is not UTF-8.
func (e *Election) HandOver(ctx context.Context, to string) error {
	return e.handOver(ctx, handOverRequest{to: to, offer: to != ""})
}

// ForceHandOver is HandOver for a candidate that cannot accept: the leader leaves even if no
// candidate of that name is there. Then its work stops, and after a head start any candidate leads,
// perhaps the same as before. If this process itself leads, ForceHandOver needs no store call, and
// a later call replaces the successor that an earlier one named.
func (e *Election) ForceHandOver(ctx context.Context, to string) error {
	return e.handOver(ctx, handOverRequest{to: to})
}

func (e *Election) handOver(ctx context.Context, q handOverRequest) error {
	if err := record.CheckName(q.to); err != nil {
		return fmt.Errorf("tenure: successor %w", err)
	}
	if e.runner.handOverOwn(q) {
		return nil
	}
	err := e.runner.retryRequest(ctx, q)
	_, waits := errors.AsType[unprovenError](err)
	switch {
	case err != nil && ctx.Err() != nil && !waits:
		return context.Cause(ctx)
	case errors.Is(err, ErrNoLeader):
		return err
	}
	return e.runner.wrap("hand-over", err)
}

// unprovenError refuses a request over a record that the store marks as unproven. The write would
// remove the mark, and members that have not seen it would not wait (L3a).
type unprovenError struct{ lease time.Duration }

func (unprovenError) Error() string {
	return "later writes may be missing in the store, and the leader has not renewed to show that none is"
}

// handOverAttempts bounds the attempts. A renewal of the leader can make one fail, which is rare.
const handOverAttempts = 5

// handOverRequest is what a caller asks for.
type handOverRequest struct {
	to string
	// offer: the candidate to must accept before the leader obeys (H3).
	offer bool
	// forItself: this member has precedence, or accepts an offer.
	forItself, accepts bool
	term               uint64 // of the leader to ask; 0: of the one that the first read shows
}

// handOverOwn asks this process to hand over if it leads, without a store call. An offer must be in
// the store, where its candidate finds it, unless this process is leaving anyway.
func (m *runner) handOverOwn(q handOverRequest) (done bool) {
	m.step(func(now clock.Reading) {
		switch {
		case m.term == nil:
		case q.to == m.id && m.machine.Holds(now):
			done = true
		case !q.offer || m.machine.Asked() != nil:
			m.machine.HandOver(now, q.to, m.id)
			done = m.machine.Asked() != nil
		}
	})
	return done
}

// requestHandOver asks the leader of a term to hand over to this member, which has precedence or
// was offered the lead, as long as it campaigns. The machine repeats the request when that is due.
func (m *runner) requestHandOver(campaign context.Context, t protocol.Transition, within time.Duration) {
	ctx, cancel := context.WithTimeout(campaign, within)
	defer cancel()
	err := m.retryRequest(ctx, handOverRequest{to: m.id, forItself: true, accepts: t.Accepts, term: t.Term})
	if err != nil && campaign.Err() == nil && !errors.Is(err, ErrNoLeader) {
		m.step(func(clock.Reading) { m.report(EventTrouble, m.term, m.wrap("hand-over", err)) })
	}
}

// retryRequest makes the request, in a few attempts. If the record is unproven, it first waits: a
// leader that is alive renews within its lease. It never asks a later leader: an attempt whose
// answer was lost may have moved leadership there.
func (m *runner) retryRequest(ctx context.Context, q handOverRequest) error {
	began := m.clock.Now()
	for first, failures := q.term, 0; ; {
		done, err := m.request(ctx, &q)
		unproven, wait := errors.AsType[unprovenError](err)
		left := unproven.lease - m.clock.Now().LeaderSince(began.Instant)
		switch {
		case wait && left > 0 && m.pause(ctx, min(left, m.attemptTimeout()/2)):
		case q.term != first && errors.Is(err, ErrNoLeader):
			return nil
		case wait || done || ctx.Err() != nil || failures == handOverAttempts-1:
			return err
		default:
			failures++
		}
	}
}

// pause waits for d or for the end of ctx. It reports whether d has passed.
func (m *runner) pause(ctx context.Context, d time.Duration) bool {
	over := make(chan struct{})
	defer m.clock.AfterFunc(d, func() { close(over) })()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// request adds the request to the record by one compare-and-swap. It reports done where another
// attempt would change nothing. After a lost answer the next attempt finds the request there.
func (m *runner) request(ctx context.Context, q *handOverRequest) (done bool, err error) {
	err = update.Once(ctx, m.store, m.clock, m.key, m.attemptTimeout(), func(entry driver.Entry) (value []byte, err error) {
		value, err = m.withRequest(entry, q)
		done = err != nil
		return value, err
	})
	if errors.Is(err, record.ErrRequested) {
		return true, nil
	}
	return done || err == nil || isFinal(err), err
}

// withRequest returns the holder's record with the request added and every other byte copied, so
// that no member takes it for a renewal. It returns ErrRequested if no request is needed. It keeps
// the term of that holder in q.
func (m *runner) withRequest(entry driver.Entry, q *handOverRequest) ([]byte, error) {
	cell := protocol.Credible(protocol.Decode(entry))
	if err := cell.Fault(); err != nil {
		return nil, err
	}
	r := &cell.Record
	if cell.Kind == protocol.Absent || !r.Held() || q.term != 0 && r.Term != q.term {
		return nil, ErrNoLeader
	}
	q.term = r.Term
	by, o := m.id, r.Request
	offered := o != nil && o.Offer
	switch {
	case m.isHolder(q.to, r), q.accepts && !offered, q.forItself && offered && o.To != q.to:
		// The offer is gone, or the operator's offer to another has precedence.
		return nil, record.ErrRequested
	case q.forItself && offered:
		by = o.By
	}
	value, err := record.AddRequest(entry.Value, record.Request{Term: r.Term, To: q.to, By: by, Offer: q.offer})
	if err == nil && entry.Unproven {
		return nil, unprovenError{r.Lease}
	}
	return value, err
}

// isHolder reports whether to is the holder of r. Two processes may have the same ID by mistake. A
// process that gives its own ID means itself, so it still asks another holder with that ID.
func (m *runner) isHolder(to string, r *record.Record) bool {
	if to == m.id {
		return r.Incarnation == m.machine.Incarnation()
	}
	return to == r.LeaderID
}

// attemptTimeout is the time limit of one store operation.
func (m *runner) attemptTimeout() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings.machine.Attempt()
}
