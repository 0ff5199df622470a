package protocol

import (
	"errors"
	"math"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/nomination"
)

// The causes that transitions carry, and that Cause returns.
var (
	ErrExpired        = errors.New("lease ran out before a renewal was confirmed")
	ErrDeposed        = driver.ErrDeposed
	ErrVanished       = &driver.StoreError{Kind: driver.Deleted}
	ErrRemade         = &driver.StoreError{Kind: driver.Recreated}
	ErrRegressed      = &driver.StoreError{Kind: driver.Regressed}
	ErrForeign        = &driver.StoreError{Kind: driver.Foreign}
	ErrMalformed      = &driver.StoreError{Kind: driver.Malformed}
	ErrOverdue        = errors.New("work did not stop within FinishWithin")
	ErrAbandoned      = errors.New("work ended by panic or Goexit")
	ErrReleased       = errors.New("lease was released")
	ErrHandOver       = errors.New("hand-over was asked for")
	ErrNominationLost = nomination.ErrWithdrawn
	ErrIneligible     = errors.New("no longer eligible")
	ErrUnconfirmed    = errors.New("release was not confirmed; unless another candidate leads by now, the lease runs out by itself")
	ErrTimeout        = driver.ErrNoAnswer
	ErrExhausted      = errors.New("no term is left below 2^53")
	ErrFloor          = errors.New("store's floor of the terms is not credible")
)

// Config holds the machine's settings. The caller validates it.
type Config struct {
	// ID, Addr, Metadata and Priority are written into this member's records.
	ID       string
	Addr     string
	Metadata map[string]string
	Priority int

	// HasNominator says that a nominator outside the election decides which member has precedence.
	// Precedence is how much later this member claims while it is not the nominee. With
	// NomineeOnly, it claims only as the nominee.
	HasNominator bool
	Precedence   time.Duration
	NomineeOnly  bool

	// Lease is written into records. Renew is the time from the send of one renewal to that of the
	// next. Budget is Lease minus the margin.
	Lease  time.Duration
	Renew  time.Duration
	Budget time.Duration
	// Drift bounds the error of this member's clock rates, in parts per million. Budget allows for
	// it, and records state it.
	Drift uint32
	// StopWithin is the part of the margin that the user reserves for work to stop.
	StopWithin time.Duration
	// FinishWithin is how long a leader goes on to renew after it was asked to leave.
	FinishWithin time.Duration
	// Grace is the time from a win to its announcement (Elected). The member renews in this time.
	Grace time.Duration
	// Splay bounds the random delay before the first claim of a campaign.
	Splay time.Duration
	// Poll is the time between reads where nothing is pushed. PollStable is that time while a
	// leader is seen to renew, and no hand-over is asked for.
	Poll       time.Duration
	PollStable time.Duration
	// Retry lists the waits after the first, second, ... failure in a row. After these the wait is
	// Renew, and a quarter of it for a leader.
	Retry []time.Duration
	// HeadStart is how much earlier than others a named successor claims where changes are pushed.
	// Elsewhere its head start is at least this long.
	HeadStart time.Duration
	// Hearsay says that other members send the pushes. A push may then reach only some members, and
	// the rest read the change. A pushed state may never have been in the store.
	Hearsay bool
	// Rand returns 64 random bits, for nonces, jitter and splay.
	Rand func() uint64
}

// Margin returns the part of a lease that its holder does not use (L3). It is the sum of three
// times: the time by which two clocks may drift apart during the lease if each is accurate within
// r; d, by which timers may be late; and stopWithin, which the user reserves for work to stop.
func Margin(lease time.Duration, r float64, d, stopWithin time.Duration) time.Duration {
	r = float64(PPM(r)) / million
	drift := time.Duration(float64(lease) * 2 * r / (1 + r))
	return drift + d + stopWithin
}

// Promise sets Drift, StopWithin and Budget for clocks that are accurate within r and timers that
// are late by up to d.
func (c *Config) Promise(r float64, d, stopWithin time.Duration) {
	c.Drift, c.StopWithin, c.Budget = PPM(r), stopWithin, c.Lease-Margin(c.Lease, r, d, stopWithin)
}

const million = 1_000_000

// PPM converts r to parts per million, rounded up. An excess below a thousandth of a part, such as
// a rounding error of floating-point numbers, does not count.
func PPM(r float64) uint32 { return uint32(math.Ceil(r*million - 0.001)) }

// stretch returns how long a member waits for another's lease to expire: lease * (1+own)/(1+r),
// rounded up, and never less than the lease (L3). This member's clocks are accurate within own, and
// the holder's within r, both in parts per million.
func stretch(lease time.Duration, own, r uint32) time.Duration {
	if own <= r {
		return lease
	}
	return lease + (lease*time.Duration(own-r)+million+time.Duration(r)-1)/(million+time.Duration(r))
}

// TimerLateness returns the default for d of Margin: how late a timer may fire on a busy host.
func TimerLateness(lease time.Duration) time.Duration {
	return max(25*time.Millisecond, min(lease/50, 100*time.Millisecond))
}

// Attempt returns the time limit of one operation: two fit between a renewal and the deadline.
func (c *Config) Attempt() time.Duration {
	next := promise{budget: c.Budget, renew: c.Renew}
	return next.timeout()
}

// heartbeat returns 1.25 renewal intervals: a healthy leader writes at least once in this time.
func (c *Config) heartbeat() time.Duration { return c.Renew + c.Renew/4 }

// ReleaseWithin returns how long a release or a withdrawal is tried. Then the lease expires by
// itself.
func (c *Config) ReleaseWithin() time.Duration {
	return min(c.Lease/3, 2*time.Second)
}
