package neli

import "fmt"

// Barrier is told of the beginning and the end of leadership, one event at a time, by Pulse and Close.
type Barrier func(e Event)

// NopBarrier returns a barrier that does nothing.
func NopBarrier() Barrier { return func(Event) {} }

// Event is LeaderAcquired, LeaderRevoked or LeaderFenced.
type Event interface {
	fmt.Stringer
}

// LeaderAcquired says that this process was elected, each time by a new term with a higher Token. IsLeader is true already
// while the barrier handles it. No Pulse returns true and no task runs before the barrier has returned, so that it can
// prepare what a leader needs.
type LeaderAcquired struct{}

// String returns "LeaderAcquired[]".
func (LeaderAcquired) String() string { return "LeaderAcquired[]" }

// LeaderRevoked says that this process is to leave: the group gave the partition to another, somebody asked for a hand-over, or
// Close was called. The lease is kept, and renewed, until the barrier returns; only then is another elected. It may take
// max.poll.interval.ms from when the process was asked; beyond that the lease runs out.
type LeaderRevoked struct{}

// String returns "LeaderRevoked[]".
func (LeaderRevoked) String() string { return "LeaderRevoked[]" }

// LeaderFenced says that leadership has ended already: the lease ran out, or another process leads. What is under way must
// stop at once; how long the barrier takes holds up nobody but this process, which takes part again afterwards.
type LeaderFenced struct{}

// String returns "LeaderFenced[]".
func (LeaderFenced) String() string { return "LeaderFenced[]" }
