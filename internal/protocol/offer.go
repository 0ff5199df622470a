package protocol

import (
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/record"
)

// An offer is a request to hand over that counts only once the candidate that it names has accepted
// it (H3). So a name that nobody has, or that of a candidate that cannot lead, does not empty the
// seat.

// offerLeases is how long a leader keeps an offer, in leases. A follower reads at least once in a
// lease.
const offerLeases = 2

// offer is an offer that a leader keeps in its renewals.
type offer struct {
	request record.Request
	since   clock.Instant
}

// keepOffer notes the offer in view, and since when it is there.
func (m *Machine) keepOffer(now clock.Reading) {
	q := m.view.cell.Record.Request
	switch o := m.lease.offer; {
	case !m.mine() || q == nil || !q.Offer || q.Term != m.lease.term:
		m.lease.offer = nil
	case o == nil || o.request != *q:
		m.lease.offer = &offer{*q, now.Instant}
	}
}

// offered returns the offer that the next renewal carries, or nil.
func (m *Machine) offered(now clock.Reading) *record.Request {
	o := m.lease.offer
	if o == nil || m.lease.asked != nil {
		return nil
	}
	if over := byLeader(o.since, offerLeases*m.cfg.Lease); over.left(now.Instant) <= 0 {
		return nil
	}
	return &o.request
}

// isOffered reports whether the holder of r offers the lead to this member, and this member may
// claim.
func (m *Machine) isOffered(r *record.Record) bool {
	_, mayClaim := m.delayForNominee()
	q := r.Request
	return mayClaim && q != nil && q.Offer && q.Term == r.Term && q.To == m.cfg.ID
}

// untilAccept returns the time until a candidate may accept: at once, and again in case that
// failed.
func (h *health) untilAccept(now clock.Reading, again time.Duration) time.Duration {
	if h.acceptedAt == nil {
		return 0
	}
	repeat := byFollower(*h.acceptedAt, again)
	return repeat.left(now.Instant)
}
