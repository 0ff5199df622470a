package protocol

import (
	"errors"
	"math"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// The reasons why a term ended or is asked to end.
var (
	ErrExpired        = errors.New("lease ran out before a renewal was confirmed")
	ErrDeposed        = driver.ErrDeposed
	ErrVanished       = errors.New("record was deleted or expired in the store")
	ErrRemade         = errors.New("store was deleted and recreated")
	ErrRegressed      = errors.New("store holds an older state than it did")
	ErrForeign        = errors.New("key holds bytes that are no election record")
	ErrMalformed      = errors.New("key holds a malformed election record")
	ErrOverdue        = errors.New("work did not stop within FinishWithin")
	ErrAbandoned      = errors.New("work ended by panic or Goexit")
	ErrReleased       = errors.New("lease was released")
	ErrHandOver       = errors.New("hand-over was asked for")
	ErrNominationLost = errors.New("the nomination ended")
	ErrIneligible     = errors.New("no longer eligible")
	ErrUnconfirmed    = errors.New("release was not confirmed; the lease runs out by itself")
	ErrTimeout        = errors.New("store did not answer in time")
	ErrExhausted      = errors.New("no term is left below 2^53")
)

// Config holds the machine's settings. The caller validates it.
type Config struct {
	ID       string
	Addr     string
	Metadata map[string]string
	Priority int

	// Nominated says that a nominator outside the election decides which member should lead.
	// Precedence is how much later than the nominee this member claims. With NomineeOnly, it claims
	// only as the nominee.
	Nominated   bool
	Precedence  time.Duration
	NomineeOnly bool

	// Lease is written into records. Renew is the time from one send to the next. Budget is Lease
	// less the margin.
	Lease  time.Duration
	Renew  time.Duration
	Budget time.Duration
	// Drift is the bound of this member's clocks in parts per million. Budget allows for it, and
	// records state it.
	Drift uint32
	// StopWithin is the part of the margin that the user reserves for work to stop.
	StopWithin time.Duration
	// FinishWithin bounds the time from the request to leave until renewing stops.
	FinishWithin time.Duration
	// Grace is the wait before the election is announced; the lease is held and renewed in this
	// time.
	Grace time.Duration
	// Splay bounds the random delay before the first claim of a campaign.
	Splay time.Duration
	// Poll is the time between reads where nothing is pushed; PollStable while a leader is seen to
	// renew.
	Poll       time.Duration
	PollStable time.Duration
	// Retry lists the waits after the first, second, ... failure in a row; then the wait is Renew.
	Retry []time.Duration
	// HeadStart is the time that a named successor gets where changes are pushed.
	HeadStart time.Duration
	// Hearsay says that other members send the pushes. A push may then reach only some members, and
	// the rest learn of the change by a read. The store may never have shown what is pushed.
	Hearsay bool
	// Rand returns 64 random bits, for nonces, jitter and splay.
	Rand func() uint64
}

// Margin returns the part of a lease that its holder does not use (L3). It is the sum of three
// times: how far two clocks may drift apart during the lease if each is accurate within r, the
// lateness of timers d, and the time that the user reserves for work to stop.
func Margin(lease time.Duration, r float64, d, stopWithin time.Duration) time.Duration {
	r = float64(PPM(r)) / million
	drift := time.Duration(float64(lease) * 2 * r / (1 + r))
	return drift + d + stopWithin
}

// Promise sets Drift, StopWithin and Budget: how much of Lease this member relies on while it
// leads, with clocks that are accurate within r and timers that are late by up to d.
func (c *Config) Promise(r float64, d, stopWithin time.Duration) {
	c.Drift, c.StopWithin, c.Budget = PPM(r), stopWithin, c.Lease-Margin(c.Lease, r, d, stopWithin)
}

const million = 1_000_000

// PPM converts a bound to parts per million, rounded up. It ignores the rounding error of
// floating-point numbers.
func PPM(r float64) uint32 { return uint32(math.Ceil(r*million - 0.001)) }

// stretch returns how long a member waits, on clocks that are accurate within own, until a lease
// has expired whose holder's clocks are accurate within r: lease * (1+own)/(1+r), rounded up, and
// never less than the lease (L3). Both bounds are in parts per million.
func stretch(lease time.Duration, own, r uint32) time.Duration {
	if own <= r {
		return lease
	}
	return lease + (lease*time.Duration(own-r)+million+time.Duration(r)-1)/(million+time.Duration(r))
}

// TimerLateness returns the default of d: how late a timer may fire on a busy machine.
func TimerLateness(lease time.Duration) time.Duration {
	return max(25*time.Millisecond, min(lease/50, 100*time.Millisecond))
}

// Attempt returns the time limit of one operation: two fit between a renewal and the deadline.
func (c *Config) Attempt() time.Duration {
	next := promise{budget: c.Budget, renew: c.Renew}
	return next.timeout()
}

// heartbeat is longer than the time from one renewal to the next.
func (c *Config) heartbeat() time.Duration { return c.Renew + c.Renew/4 }

// ReleaseWithin bounds the time of a release or a withdrawal; after it the lease is left to expire.
func (c *Config) ReleaseWithin() time.Duration {
	return min(c.Lease/3, 2*time.Second)
}
