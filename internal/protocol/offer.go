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

// offer is an offer that a leader keeps in its renewals. Without a request there is none.
type offer struct {
	request record.Request
	since   clock.Instant
}

// keepOffer notes the offer in view, and since when it is there.
func (m *Machine) keepOffer(now clock.Reading) {
	var q record.Request
	if r := m.view.cell.Record.Request; m.mine() && r != nil && r.Offer && r.Term == m.lease.term {
		q = *r
	}
	if o := &m.lease.offer; o.request != q {
		*o = offer{q, now.Instant}
	}
}

// offered returns the offer that the next renewal carries, or nil.
func (m *Machine) offered(now clock.Reading) *record.Request {
	o := &m.lease.offer
	over := byLeader(o.since, offerLeases*m.cfg.Lease)
	if !o.request.Offer || m.lease.asked != nil || over.left(now.Instant) <= 0 {
		return nil
	}
	kept := o.request
	return &kept
}

// isOffered reports whether the holder of r offers the lead to this member, and this member may
// claim.
func (m *Machine) isOffered(r *record.Record) bool {
	_, mayClaim := m.delayForNominee()
	q := r.Request
	return mayClaim && q != nil && q.Offer && q.Term == r.Term && q.To == m.cfg.ID
}

// untilAccept returns the time until a candidate may accept: at once, and again in case that failed.
func (h *health) untilAccept(now clock.Reading, again time.Duration) time.Duration {
	if !h.accepted {
		return 0
	}
	repeat := byFollower(h.acceptedAt, again)
	return repeat.left(now.Instant)
}
