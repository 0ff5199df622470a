package neli

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure"
)

// Neli takes part in the election of a leader. Token and Term are not goNELI's.
type Neli interface {
	// IsLeader reports whether this process leads at this moment: the barrier was called with
	// LeaderAcquired, and not yet with LeaderRevoked or LeaderFenced; the lease is valid by this
	// process's clock; and Close was not called.
	IsLeader() bool
	// Pulse is PulseCtx with a time limit.
	Pulse(timeout time.Duration) (bool, error)
	// PulseCtx calls the barrier with the events that are due. It returns true if this process
	// leads: at once, or as soon as the process is elected and the barrier has returned. It returns
	// false if ctx ends first. If the instance was closed or can never lead, it returns an error,
	// together with whether the process still leads; see the package comment.
	//
	// Call it at least every max.poll.interval.ms. Otherwise the instance counts as stuck: it
	// leaves the group, its lease expires, and it takes part again at the next call.
	PulseCtx(ctx context.Context) (bool, error)
	// Deadline returns when Pulse last checked for changes.
	Deadline() Deadline
	// Close ends leadership and leaves the group. It calls the barrier with LeaderRevoked if the
	// process leads. It waits for a task of Background. If the program pulses in a loop of its own,
	// end the work of that loop before Close or in the barrier: Close takes the work as done when
	// the barrier returns. Close returns when the lease is released. If a callback or a task takes
	// longer than 10 s, Close returns an error; closing goes on, and Await waits for it.
	Close() error
	// Await returns when the instance is closed.
	Await()
	// State returns whether the instance is live, closing or closed.
	State() State
	// Background starts a goroutine that pulses, and calls the task again and again while this
	// process leads. It returns an error if the task is nil.
	Background(task LeaderTask) (Pulser, error)
	// Token returns the fencing token of the term that this process holds at this moment, 0 if it
	// holds none. Each LeaderAcquired has a higher token than any earlier leader of this group had.
	// The token is available from the barrier's call with LeaderAcquired until its call with
	// LeaderRevoked has returned, or the lease is over. Pass it to the resource with each write.
	Token() uint64
	// Term returns the term itself, even if it is over, from the barrier's call with LeaderAcquired
	// until its call with LeaderRevoked or LeaderFenced has returned; nil otherwise, and always for
	// a mock. The Context of the term ends with the lease, also while Pulse is not called.
	Term() *tenure.Term
}

// State is the state of an instance.
type State int

// The states.
const (
	// Live: the instance takes part in the election.
	Live State = iota
	// Closing: Close was called.
	Closing
	// Closed: closing is complete.
	Closed
)

// ErrNonLivePulse is returned by Pulse after Close was called.
var ErrNonLivePulse = errors.New("neli: closed, so there is nothing to pulse")

var (
	errBarriers = errors.New("neli: there can be one barrier")
	errNoTask   = errors.New("neli: Background needs a task")
	errBusy     = errors.New("neli: a barrier or a task has not returned; closing goes on when it has")
)

// New returns an instance that takes part in the election of its group from now on. It connects in
// the background, so the brokers may be down. It applies the defaults to a copy of config, and
// returns an error that names each wrong setting. At most one barrier may be given. The caller must
// close the instance.
func New(config Config, barrier ...Barrier) (Neli, error) {
	tell, err := sole(barrier)
	if err != nil {
		return nil, err
	}
	config.SetDefaults()
	props, err := config.check()
	if err != nil {
		return nil, err
	}
	props.report(config.Scribe)
	return start(config, props, newKafka(config, props), tell), nil
}

func sole(barriers []Barrier) (Barrier, error) {
	switch {
	case len(barriers) > 1:
		return nil, errBarriers
	case len(barriers) == 0 || barriers[0] == nil:
		return NopBarrier(), nil
	}
	return barriers[0], nil
}
