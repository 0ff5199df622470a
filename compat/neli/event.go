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

// LeaderAcquired says that this process was elected, each time by a new term with a higher Token.
// IsLeader is true already while the barrier handles it. No Pulse returns true and no task runs
// before the barrier has returned, so that it can prepare the leader's work.
type LeaderAcquired struct{}

// String returns "LeaderAcquired[]".
func (LeaderAcquired) String() string { return "LeaderAcquired[]" }

// LeaderRevoked says that this process should stop leading: the group gave the partition to
// another, a hand-over was requested, or Close was called. The lease is kept, and renewed, until
// the barrier returns; only then is another elected. It may take max.poll.interval.ms from when the
// process was asked; after that the lease expires.
type LeaderRevoked struct{}

// String returns "LeaderRevoked[]".
func (LeaderRevoked) String() string { return "LeaderRevoked[]" }

// LeaderFenced says that leadership has ended already: the lease expired, or another process leads.
// Work must stop at once. The time of the barrier delays only this process, which takes part again
// afterwards.
type LeaderFenced struct{}

// String returns "LeaderFenced[]".
func (LeaderFenced) String() string { return "LeaderFenced[]" }
