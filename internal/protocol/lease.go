package protocol

import (
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// purpose says why a record was written.
type purpose uint8

const (
	claim purpose = iota + 1
	renew
	release
	create // of a vacant record
)

// pendingWrite is an own write whose outcome is unknown.
type pendingWrite struct {
	promise
	purpose purpose
	nonce   string
	term    uint64
	// prev is what it was to replace, and over the nonce of the record there: the version alone
	// may recur.
	prev driver.Version
	over string
	// nominated: it was sent by the nominee.
	nominated bool
}

// expects reports whether the write may yet replace c.
func (a *pendingWrite) expects(c *Cell) bool { return a.prev == c.Version && a.over == c.Record.Nonce }

// promise is what an own write says of the time for which it may be relied on.
type promise struct {
	sent clock.Instant
	// budget is the lease in the write's own bytes less the margin, and renew when it is to be followed by another.
	budget, renew time.Duration
}

// timeout bounds one operation so that, in the time from a renewal to the deadline, two fit.
func (p *promise) timeout() time.Duration { return (p.budget - p.renew) / 2 }

// deadline is until when the holder may trust this write if it is the one in the cell (L1).
func (p *promise) deadline() due { return byLeader(p.sent, p.budget) }

// remaining is the time until the deadline.
func (p *promise) remaining(now clock.Reading) time.Duration {
	deadline := p.deadline()
	return deadline.left(now.Instant)
}

// lease is what this member holds: one term, from winning it until Finish.
type lease struct {
	term uint64
	seq  uint64
	held promise // of the newest own write known to have been in the cell
	// announced: the grace is over and the owner was told. asked: why it shall leave.
	announced bool
	// hasten: the next renewal is due at once.
	hasten bool
	// nominated: this member was the nominee when it claimed, or at some time of the term.
	nominated bool
	// requestTaken: one request was read, and what was said since then counts more.
	requestTaken bool
	wonAt        clock.Instant
	asked        error
	// request asks for a hand-over; it is kept because a renewal overwrites it.
	request *record.Request
	// moves counts how often what remains changed otherwise than by time passing.
	moves uint64
	// vouched is the version of an absence that was read while the term was valid: nobody else can hold a lease at
	// that state, so a released record may replace it (and no other absence).
	vouched driver.Version
}

// remaining is the time until the earliest deadline of every own write that may be the current
// record (L1): of a write whose outcome is unknown only the shorter promise may be relied on.
func (m *Machine) remaining(now clock.Reading) time.Duration {
	left := m.lease.held.remaining(now)
	for i := range m.pending {
		left = min(left, m.pending[i].remaining(now))
	}
	return left
}

// expire ends a term whose time is over. Every input runs it first, so an answer that comes late finds the term ended and
// cannot revive it (L4).
func (m *Machine) expire(now clock.Reading) {
	if m.phase == Leading && m.remaining(now) <= 0 {
		m.end(ErrExpired)
	}
}

// end closes the term; the work may still run. Before the announcement there is no work, and the member seeks on.
func (m *Machine) end(cause error) {
	m.cause = cause
	if !m.lease.announced {
		m.phase, m.pending = Candidate, nil
		return
	}
	m.phase = Ended
	m.tell(Transition{What: Lost, Term: m.lease.term, Cause: cause})
}
