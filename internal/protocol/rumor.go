package protocol

import "github.com/tenure-go/tenure/clock"

// rumor is what an unverified push said last: the holder has renewed, by a write with this nonce.
// Anybody may have sent it. So it only postpones the next read (L13), the claim after it, and the
// time at which the leader is reported as gone. Before the holder sends a write, nothing else knows
// its nonce. So if a read shows the write with the rumor's nonce, that write was sent before the
// rumor came, and a follower's timer may start when the rumor came (L2).
type rumor struct {
	nonce   string
	heard   clock.Instant
	heardAt Moment
}

// credulity is the number of leases for which rumors postpone a read. After that a member reads,
// because false ones could otherwise keep a dead leader's lease alive without end.
const credulity = 10

// unverified takes a push that anybody may have sent.
func (m *Machine) unverified(now clock.Reading, c *Cell) {
	_, own := m.match(c.Record.Nonce)
	late := c.sameTerm(&m.view.cell) && c.Record.Seq < m.view.cell.Record.Seq
	switch {
	case m.view.known() && c.Version == m.view.cell.Version:
	case m.phase == Candidate && m.isOffered(&c.Record) && !m.isOffered(&m.view.cell.Record):
		m.doubt() // the store shows whether it is true
	case c.Kind == Valid && (own || late || m.view.rumor != nil && m.view.rumor.nonce == c.Record.Nonce):
	case m.listensToRumors(now) && m.view.renewedBy(c) && c.Record.Incarnation != m.incarnation:
		m.view.rumor = &rumor{c.Record.Nonce, now.Instant, MomentOf(now.Wall)}
	default:
		m.doubt()
	}
}

// listensToRumors reports whether nothing else needs a read: the view is certain and believed, the
// last answer of the store showed that the holder renews, that answer came not long ago, and the
// member has been well since (see health).
func (m *Machine) listensToRumors(now clock.Reading) bool {
	limit := m.verifyAt()
	return m.view.certain() && m.view.trust == sound && m.view.thriving() && m.health.well && limit.left(now.Instant) > 0
}

// verifyAt returns when the cell is read whatever rumors say.
func (m *Machine) verifyAt() due {
	return byLeader(m.view.heard, credulity*max(m.cfg.Lease, m.view.cell.Record.Lease))
}

// renewedBy reports whether c can be the next write of the holder in view: the same term, lease and
// drift bound, and a higher Seq.
func (v *view) renewedBy(c *Cell) bool {
	r, shown := &c.Record, &v.cell.Record
	return v.held() && c.Kind == Valid && r.Held() && !v.otherEra(c) && c.sameTerm(&v.cell) &&
		r.Seq > shown.Seq && r.Lease == shown.Lease && r.Drift == shown.Drift
}

// firstHeard returns a time by which the write of c, which was just seen, has certainly been sent.
func (v *view) firstHeard(now clock.Reading, c *Cell) clock.Instant {
	if r := v.rumor; r != nil && v.trust == sound && v.change != remade && c.Kind == Valid && c.Record.Nonce == r.nonce {
		return r.heard
	}
	return now.Instant
}

// renewedAt returns the time from which a follower counts: when the rumor came; since, if there is
// no rumor.
func (v *view) renewedAt() clock.Instant {
	if v.rumor != nil {
		return v.rumor.heard
	}
	return v.since
}

// lastSign returns when the cell, or a rumor of it, was last seen.
func (v *view) lastSign() (clock.Instant, Moment) {
	if v.rumor != nil {
		return v.rumor.heard, v.rumor.heardAt
	}
	return v.heard, v.heardAt
}
