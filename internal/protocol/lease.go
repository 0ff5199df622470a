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

// pendingWrite is a write of this member whose outcome is unknown.
type pendingWrite struct {
	promise
	purpose purpose
	nonce   string
	term    uint64
	// prev is the version that the write expects. over is the nonce of the record there, because
	// versions may recur.
	prev driver.Version
	over string
	// nominated: this member was the nominee when it sent the write.
	nominated bool
}

// expects reports whether the write can still replace c.
func (a *pendingWrite) expects(c *Cell) bool { return a.prev == c.Version && a.over == c.Record.Nonce }

// promise says for how long the holder may rely on its write.
type promise struct {
	sent clock.Instant
	// budget is the lease in this write minus the margin. renew is the time until the next one.
	budget, renew time.Duration
}

// timeout bounds one operation so that two fit between a renewal and the deadline.
func (p *promise) timeout() time.Duration { return (p.budget - p.renew) / 2 }

// deadline returns when the holder must stop trusting this write if it is the one in the cell (L1).
func (p *promise) deadline() due { return byLeader(p.sent, p.budget) }

func (p *promise) remaining(now clock.Reading) time.Duration {
	deadline := p.deadline()
	return deadline.left(now.Instant)
}

// lease is the state of the latest term of this member.
type lease struct {
	term uint64
	seq  uint64  // of the last claim or renewal
	held promise // of the last confirmed write, or of a void one that ends earlier (voidPending)
	// announced: the grace is over and the caller was notified.
	announced bool
	// hasten: the next renewal is due at once.
	hasten bool
	// nominated: this member was the nominee when it claimed, or at some time in the term.
	nominated bool
	// requestTaken: a request was obeyed in this term, and no other one will be.
	requestTaken bool
	moves        uint32 // see Moves
	wonAt        clock.Instant
	asked        error // why this member was asked to leave; nil if it was not
	// request asks for a hand-over; it is kept because a renewal overwrites it in the cell.
	request *record.Request
	offer   *offer // nil: none
	// absence is the version of an absence that was read while the term was valid. No other member
	// can hold a lease until the deadline, so a released record may replace this absence and no
	// other. Later its version may recur.
	absence driver.Version
}

// remaining returns the time until the earliest deadline of all writes that may be the current
// record (L1). So a pending write can shorten it, and only a confirmed one can lengthen it.
func (m *Machine) remaining(now clock.Reading) time.Duration {
	left := m.lease.held.remaining(now)
	for i := range m.pending {
		left = min(left, m.pending[i].remaining(now))
	}
	return left
}

// expire ends a term after its deadline. Each answer and push runs it first, so a late one finds
// the term ended and cannot revive it (L4).
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
		m.phase, m.pending, m.lease.absence = Candidate, nil, ""
		return
	}
	m.phase = Ended
	m.tell(Transition{What: Lost, Term: m.lease.term, Cause: cause})
}
