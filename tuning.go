package tenure

import "time"

// None sets a time, or Tuning.Drift, to zero where the zero value selects a default.
const None = -1

// Tuning holds the settings of a Config that few programs need. Measure before you change them: the
// defaults follow Config.Lease, so a shorter lease alone makes everything faster. The zero value of
// each field selects its default:
//
//	field          default                      limits
//	Renew          Lease / 3                    1 ms to Lease - Margin - 2 ms
//	Precedence     Lease                        at most 1 h; may be None
//	Grace          none                         less than Lease - Margin
//	Splay          none                         at most 1 h
//	Poll           Renew                        1 ms to 1 h
//	PollStable     Lease, or Poll if longer     Poll to 1 h
//	NoWatch        false
//	Retry          0, 100 ms, 1 s               at most 10, each from 0 to Renew; none: empty, not nil
//	Backoff        Lease * 2^(n-1), to 10 Lease
//	Drift          the clock's: 1 % on Linux,   below 50 %; may be None
//	               10 % elsewhere
//	TimerLateness  Lease / 50, 25 to 100 ms     part of the lease, see Margin; may be None
type Tuning struct {
	// Renew is the time from the send of one renewal to that of the next.
	Renew time.Duration
	// Precedence is the extra time that any other candidate waits for a nominee to claim. It has no
	// effect without a Nominator.
	Precedence time.Duration
	// Grace is how long a new leader holds the lease before its work starts.
	Grace time.Duration
	// Splay is the maximum random delay before the first claim. It spreads processes that start
	// together.
	Splay time.Duration

	// Poll is the time between reads of a store that does not push changes, while no leader is
	// known to renew: in transitions and in trouble. Each interval is drawn at random from 90 to
	// 110 % of it.
	Poll time.Duration
	// PollStable is the same while a leader is seen to renew. Values longer than Lease act like
	// Lease: the store is always read when the lease of a silent leader would be over.
	// Config.WorstFailover shows how it lengthens a failover.
	PollStable time.Duration
	// NoWatch makes the election follow by reads alone, even if the store can push changes.
	NoWatch bool

	// Retry lists the waits after the first, the second, ... store call in a row that failed. After
	// these, each wait is Renew, or for a leader, which has only until its deadline, a quarter of
	// Renew. The second default is at most a quarter of Renew, the third at most half.
	Retry []time.Duration
	// Backoff returns the delay before the next campaign when leadership was declined n times in a
	// row, n from 1. A negative delay counts as 0.
	Backoff func(n int) time.Duration

	// Drift is the bound r of this machine's clocks: local seconds per true second lie in [1-r,
	// 1+r]. Members may have different bounds. The record states the leader's, and a member whose
	// bound is larger waits longer for its lease.
	Drift float64
	// TimerLateness is how late a timer may fire on this machine. The term ends earlier by this
	// time, which protects work that relies on the contexts.
	TimerLateness time.Duration
}
