package protocol

import (
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// stepLeading decides for a leader. It obeys requests (H2), keeps offers (H3), reads after a
// renewal of unknown outcome (L7), and renews (L1, L8).
func (m *Machine) stepLeading(now clock.Reading, wake *wakeup) *Op {
	m.readRequest(now)
	if !m.view.certain() {
		return m.follow(now, wake)
	}
	if len(m.pending) == 0 && !m.lease.hasten && !wake.reached(now, m.renewAt()) {
		return nil
	}
	m.lease.seq++
	m.lease.hasten = false
	r := m.record(now, m.lease.term, m.lease.seq)
	r.Request = m.offered(now)
	return m.write(now, renew, m.view.cell.Version, r)
}

// renewAt returns when the next renewal is due. A longer interval that was configured begins with
// the next confirmed renewal.
func (m *Machine) renewAt() due {
	return byLeader(m.lease.held.sent, min(m.cfg.Renew, m.lease.held.renew))
}

// readRequest looks for a request to hand over this term, and obeys it once (H2).
func (m *Machine) readRequest(now clock.Reading) {
	m.keepOffer(now)
	leaving := m.lease.asked != nil // so the offer can only name a successor
	if q := m.view.cell.Record.Request; q != nil && q.Term == m.lease.term && (leaving || !q.Offer) {
		// Keep it: the next renewal overwrites it, and there is no work to hand over before the
		// announcement.
		m.lease.request = q
	}
	q := m.lease.request
	if q == nil || !m.lease.announced || m.lease.requestTaken || errors.Is(m.lease.asked, ErrHandOver) {
		return
	}
	m.lease.requestTaken = true
	m.HandOver(now, q.To, q.By)
}

// stepDownIfLost handles a cell that holds none of the leader's pending writes. If the record still
// names this incarnation and term, the leader renews from its version, which a request may have
// changed. The deadline does not move.
func (m *Machine) stepDownIfLost(c *Cell) {
	switch {
	case c.Kind == Absent && m.view.change == remade:
		m.end(ErrRemade)
	case c.Kind == Absent:
		m.lease.absence = c.Version
		m.end(Because(ErrVanished, c.Problem))
	case c.Kind == Foreign:
		m.end(ErrForeign)
	case c.Kind == Malformed:
		m.end(ErrMalformed)
	case m.mine() && c.Record.Term == m.lease.term:
	case m.view.change == remade:
		m.end(ErrRemade)
	case c.Record.Term < m.lease.term && !c.predecessor():
		m.end(ErrRegressed)
	default:
		m.end(ErrDeposed)
	}
}

// leaderTimers makes an unwanted leader leave (L13), announces the term after the grace, ends it
// when its work takes too long to stop, and sets the wakeup for the deadline (L1).
func (m *Machine) leaderTimers(now clock.Reading, wake *wakeup) {
	m.stepDownIfUnwanted(now)
	if m.phase == Releasing {
		m.releasingTimers(now, wake)
		return
	}
	if !m.lease.announced && wake.reached(now, m.announceAt()) {
		m.lease.announced = true
		m.tell(Transition{What: Elected, Term: m.lease.term})
	}
	if m.lease.asked != nil && wake.reached(now, m.finishBy()) {
		m.tell(Transition{What: Overdue, Term: m.lease.term, Cause: ErrOverdue})
		m.end(ErrOverdue)
		return
	}
	wake.in(approach(m.remaining(now)))
}

// announceAt returns when the term may be announced: after the grace.
func (m *Machine) announceAt() due { return byLeader(m.lease.wonAt, m.cfg.Grace) }

// finishBy returns when the work of a leader that was asked to leave must have finished.
func (m *Machine) finishBy() due { return byLeader(m.leavingSince, m.cfg.FinishWithin) }

// approach shortens the wait for a far deadline: the clock of timers may be slewed to run slow, and
// the check after the shorter wait corrects that.
func approach(left time.Duration) time.Duration {
	if left > 100*time.Millisecond {
		return left - left/8
	}
	return left
}
