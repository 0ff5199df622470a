package neli

import "fmt"

// Barrier is called by Pulse and Close at the beginning and the end of leadership, with one event
// at a time.
type Barrier func(e Event)

// NopBarrier returns a barrier that does nothing.
func NopBarrier() Barrier { return func(Event) {} }

// Event is LeaderAcquired, LeaderRevoked or LeaderFenced.
type Event interface {
	fmt.Stringer
}

// LeaderAcquired means that this process was elected. Each one begins a new term with a higher
// Token. IsLeader is already true while the barrier handles it. No Pulse returns true and no task
// runs before the barrier has returned, so the barrier can prepare the leader's work.
type LeaderAcquired struct{}

// String returns "LeaderAcquired[]".
func (LeaderAcquired) String() string { return "LeaderAcquired[]" }

// LeaderRevoked means that this process must stop leading: the group gave the partition to another
// process, a hand-over was requested, or Close was called. The lease is renewed until the barrier
// returns; only then is another process elected. The barrier must return within
// max.poll.interval.ms after the process was asked to stop; after that the lease expires.
type LeaderRevoked struct{}

// String returns "LeaderRevoked[]".
func (LeaderRevoked) String() string { return "LeaderRevoked[]" }

// LeaderFenced means that leadership has already ended: the lease expired, or another process
// leads. Work must stop at once. A slow barrier delays only this process, which takes part again
// after it returns.
type LeaderFenced struct{}

// String returns "LeaderFenced[]".
func (LeaderFenced) String() string { return "LeaderFenced[]" }
