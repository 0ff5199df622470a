package protocol

import (
	"time"

	"github.com/tenure-go/tenure/clock"
)

// A candidate with precedence over the leader asks it to hand over (H2). It does not ask at once: a
// member that comes and goes, or has a poor connection to the store, must not move the leadership.
// It does not ask often: a leader may have its reasons to go on.
const (
	wellLeases    = 2  // leases for which a candidate must have been well
	requestLeases = 10 // leases from one of its requests to the next
)

// health says since when a candidate is well, when it last requested a hand-over, and when it last
// accepted an offer. A failure, a new campaign, and a change of nomination or eligibility end the
// time in which it is well.
type health struct {
	since, requestedAt clock.Instant
	acceptedAt         *clock.Instant // nil: never
	well, requested    bool
}

func (h *health) recover(now clock.Reading) {
	if !h.well {
		h.well, h.since = true, now.Instant
	}
}

// untilRequest returns the time until a candidate may request a hand-over: it must have been well,
// and have requested nothing, for long enough.
func (h *health) untilRequest(now clock.Reading, lease time.Duration) time.Duration {
	ripe := byFollower(h.since, wellLeases*lease)
	left := ripe.left(now.Instant)
	if h.requested {
		again := byFollower(h.requestedAt, requestLeases*lease)
		left = max(left, again.left(now.Instant))
	}
	return left
}

// asked reports whether a candidate asked the leader for a hand-over to itself less than d ago.
func (h *health) asked(now clock.Reading, d time.Duration) bool {
	requested := h.requested && now.FollowerSince(h.requestedAt) < d
	return requested || h.acceptedAt != nil && now.FollowerSince(*h.acceptedAt) < d
}

// handOverPending reports whether the holder may release soon, because the record in view shows a
// request, or this member has asked. A named successor must see the release within its head start.
func (m *Machine) handOverPending(now clock.Reading) bool {
	return m.view.cell.Record.Request != nil || m.health.asked(now, wellLeases*m.view.expiresAfter(m.cfg))
}

// requestHandOver tells the caller to ask the leader to hand over to this member, if that is due:
// it is offered (H3), or this member has precedence (H2).
func (m *Machine) requestHandOver(now clock.Reading, wake *wakeup) {
	r := &m.view.cell.Record
	another := m.view.held() && m.view.trust == sound && !m.mine() && !m.view.cell.predecessor()
	if !another || !m.health.well {
		return
	}
	start := byFollower(m.notBefore, 0) // no request before this member could take the lease
	wait, h := start.left(now.Instant), &m.health
	accepts := m.isOffered(r)
	switch {
	case accepts:
		if !wake.over(max(wait, h.untilAccept(now, m.cfg.Renew))) {
			return
		}
		at := now.Instant
		h.acceptedAt = &at
	case r.Request == nil && m.outranks():
		if !wake.over(max(wait, h.untilRequest(now, m.view.expiresAfter(m.cfg)))) {
			return
		}
		h.requested, h.requestedAt = true, now.Instant
	default:
		return
	}
	m.tell(Transition{What: Asking, Term: r.Term, Accepts: accepts})
}
