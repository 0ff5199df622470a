package tenure

import "time"

// None means zero where the zero value of a field selects a default: in Tuning.Precedence,
// Tuning.Drift and Tuning.TimerLateness. In Config.FinishWithin it means 1 ms.
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
//	Retry          0, 100 ms, 1 s               at most 10, each from 0 to Renew
//	Backoff        Lease * 2^(n-1), at most 10 * Lease
//	Drift          the clock's: 0.01 on Linux,  below 0.5; may be None
//	               0.1 elsewhere
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

	// Retry lists the waits after the first, the second, ... consecutive failed store call. After
	// the listed ones, a follower waits Renew each time, and a leader a quarter of Renew. A leader
	// must renew before its deadline, so it also shortens listed waits to half of Renew. Nil
	// selects 0, 100 ms (at most a quarter of Renew) and 1 s (at most half of it). An empty slice
	// that is not nil lists no waits.
	Retry []time.Duration
	// Backoff returns the delay before the next campaign when leadership was declined n times in a
	// row, n from 1. A negative delay counts as 0.
	Backoff func(n int) time.Duration

	// Drift is the bound r on the error of this machine's clock rates: local seconds per true
	// second lie in [1-r, 1+r]. Members may have different bounds. The record states the bound of
	// the leader, and a member with a larger bound waits longer for the leader's lease to end.
	Drift float64
	// TimerLateness is how late a timer may fire on this machine. The term ends earlier by this
	// time, which protects work that relies on the contexts.
	TimerLateness time.Duration
}
