package neli

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure"
)

// Neli takes part in the election of a leader. Token and Term are not goNELI's.
type Neli interface {
	// IsLeader reports whether this process leads at this moment: it was told LeaderAcquired and
	// neither LeaderRevoked nor LeaderFenced, its lease is valid by its own clock, and Close was
	// not called.
	IsLeader() bool
	// Pulse is PulseCtx with a limit to the waiting.
	Pulse(timeout time.Duration) (bool, error)
	// PulseCtx calls the barrier with the events that are due, and returns true if this process
	// leads: at once if it does, else as soon as it is elected and the barrier has returned. It
	// returns false when ctx ends first. It returns an error, and whether the process leads, if the
	// instance was closed or can never lead; see the package comment.
	//
	// Call it at least every max.poll.interval.ms: an instance without calls counts as stuck. It
	// leaves the group, its lease expires, and it takes part again at the next call.
	PulseCtx(ctx context.Context) (bool, error)
	// Deadline tells when Pulse last looked for news.
	Deadline() Deadline
	// Close ends leadership as LeaderRevoked does, calling the barrier itself, and leaves the
	// group. It waits for a task of Background; a loop of the program's own should have ended,
	// since only the barrier's return shows that its work is done. It returns when the lease is
	// released, or after 10 s with an error if a callback or a task takes that long; closing then
	// goes on, and Await waits for it.
	Close() error
	// Await returns when the instance is closed.
	Await()
	// State tells whether the instance is live, closing or closed.
	State() State
	// Background starts a goroutine that pulses, and calls the task whenever this process leads,
	// over and over. It returns an error if there is no task.
	Background(task LeaderTask) (Pulser, error)
	// Token is the fencing token of the term that this process holds at this moment, 0 if it holds
	// none. Each LeaderAcquired comes with a higher one than any leader of this group ever had
	// before. It is there from the call of the barrier with LeaderAcquired until its call with
	// LeaderRevoked has returned, or the lease is over. Hand it to the resource along with each
	// write.
	Token() uint64
	// Term is that term, over or not: from the call of the barrier with LeaderAcquired until the
	// call that tells its end has returned; nil otherwise, and always for a mock. Its Context ends
	// in time, also while the process is busy elsewhere.
	Term() *tenure.Term
}

// State is where an instance is in its life.
type State int

// The states.
const (
	// Live: it takes part.
	Live State = iota
	// Closing: Close was called.
	Closing
	// Closed: nothing of it is left.
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
// the background, so that brokers need not be up. It fills in the defaults of config, without
// changing the caller's, and returns an error that names everything that is wrong with it. At most
// one barrier may be given. The caller closes the instance.
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
