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
	// prev is the version that the write expects, and over the nonce of the record there: the
	// version alone may recur.
	prev driver.Version
	over string
	// nominated: this member was the nominee when it sent the write.
	nominated bool
}

// expects reports whether the write can still replace c.
func (a *pendingWrite) expects(c *Cell) bool { return a.prev == c.Version && a.over == c.Record.Nonce }

// promise says for how long an own write may be relied on.
type promise struct {
	sent clock.Instant
	// budget is the lease in this write's own bytes less the margin. renew is when the next write
	// should follow.
	budget, renew time.Duration
}

// timeout bounds one operation so that two fit between a renewal and the deadline.
func (p *promise) timeout() time.Duration { return (p.budget - p.renew) / 2 }

// deadline returns until when the holder may trust this write if it is the one in the cell (L1).
func (p *promise) deadline() due { return byLeader(p.sent, p.budget) }

func (p *promise) remaining(now clock.Reading) time.Duration {
	deadline := p.deadline()
	return deadline.left(now.Instant)
}

// lease is the state of one term of this member, from its win until Finish.
type lease struct {
	term uint64
	seq  uint64
	held promise // of the newest own write known to have been in the cell
	// announced: the grace is over and the owner was notified. asked: why it should leave.
	announced bool
	// hasten: the next renewal is due at once.
	hasten bool
	// nominated: this member was the nominee when it claimed, or at some time in the term.
	nominated bool
	// requestTaken: one request was read, and any later wish overrides it.
	requestTaken bool
	wonAt        clock.Instant
	asked        error
	// request asks for a hand-over; it is kept because a renewal overwrites it.
	request *record.Request
	// moves counts the changes of the remaining time that time passing does not explain.
	moves uint64
	// vouched is the version of an absence that was read while the term was valid. No other member
	// can hold a lease at that state, so a released record may replace it (and no other absence).
	vouched driver.Version
}

// remaining returns the time until the earliest deadline of every own write that may be the current
// record (L1). Of a write whose outcome is unknown, only the shorter promise may be relied on.
func (m *Machine) remaining(now clock.Reading) time.Duration {
	left := m.lease.held.remaining(now)
	for i := range m.pending {
		left = min(left, m.pending[i].remaining(now))
	}
	return left
}

// expire ends a term after its deadline. Every input runs it first, so a late answer finds the term
// ended and cannot revive it (L4).
func (m *Machine) expire(now clock.Reading) {
	if m.phase == Leading && m.remaining(now) <= 0 {
		m.end(ErrExpired)
	}
}

// end closes the term; the work may still run. Before the announcement there is no work, and the
// member campaigns again.
func (m *Machine) end(cause error) {
	m.cause = cause
	if !m.lease.announced {
		m.phase, m.pending = Candidate, nil
		return
	}
	m.phase = Ended
	m.tell(Transition{What: Lost, Term: m.lease.term, Cause: cause})
}
