package protocol

import (
	"time"

	"github.com/tenure-go/tenure/internal/clock"
)

// A candidate that is to lead rather than the leader asks it to hand over (H2). Not at once: a member that comes and goes,
// or that reaches the store badly, shall move nothing. And not often: a leader may have its reasons to go on.
const (
	maturity   = 2  // leases for which a candidate must have been well
	moderation = 10 // leases from one of its requests to the next
)

// health is since when a candidate is well, and when it last asked.
type health struct {
	since, last clock.Instant
	well, asked bool
}

func (h *health) recover(now clock.Reading) {
	if !h.well {
		h.well, h.since = true, now.Instant
	}
}

// rest is how long a candidate has to wait before it may ask.
func (h *health) rest(now clock.Reading, lease time.Duration) time.Duration {
	left := maturity*lease - now.FollowerSince(h.since)
	if h.asked {
		left = max(left, moderation*lease-now.FollowerSince(h.last))
	}
	return left
}

// requestHandOver has the owner ask the leader to hand over to this member, if that is due.
func (m *Machine) requestHandOver(now clock.Reading, at *alarm) {
	r := &m.view.cell.Record
	outranked := m.view.held() && !m.mine() && !m.view.cell.predecessor() && m.outranks()
	if !outranked || !m.health.well || r.Request != nil {
		return
	}
	back := m.hold - now.FollowerSince(m.notBefore) // nobody asks for what he would not take yet
	if left := max(back, m.health.rest(now, m.view.wait(m.cfg))); left > 0 {
		at.in(left)
		return
	}
	m.health.asked, m.health.last = true, now.Instant
	m.tell(Transition{What: Asking, Term: r.Term})
}
