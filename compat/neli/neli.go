// Package neli is for programs that were written for goNELI. It has the same names, over elections
// of Tenure. A program changes its import:
//
//	import goneli "github.com/tenure-go/tenure/compat/neli"
//
// Processes of one consumer group are candidates, and the owner of partition 0 of LeaderTopic has
// precedence. But only a lease in a separate log, LeaderTopic + ".log", makes a process the leader.
// When the barrier receives [LeaderAcquired], the process was elected, and no other process is
// elected before its lease has expired or was released. docs/neli.md describes the move step by
// step, and lists the differences.
//
// # Which goroutine calls the barrier
//
// Pulse calls the barrier, in its caller's goroutine: one of the program's, or that of Background.
// Close calls the barrier, too, and no other method does. There is one call at a time, and no lock
// is held, so a barrier may call any method. But Close waits up to 10 s for the barrier and for a
// task of Background. So a call of Close from within one of them takes 10 s and returns an error.
//
// Safety does not depend on Pulse. The lease is renewed, and expires, without it. IsLeader, Token
// and the contexts of Term are always correct, however long ago Pulse was called. Pulse only
// reports the changes.
//
// # Fatal errors
//
// Pulse returns an error, and the Pulser of Background ends with it, if the instance was closed
// (ErrNonLivePulse), or if it can never lead as it is configured:
//
//   - the brokers refuse the user, or a right is missing, before the first successful read (the
//     error wraps driver.ErrDenied);
//   - a topic has settings that would allow two leaders, or cannot be created;
//   - the group refuses the member, for example because its session timeout is outside the brokers'
//     bounds;
//   - candidates of another group take part in this election;
//   - Configure made settings that the election does not accept.
//
// A fatal error stays: each later Pulse returns it, until Close. After any other error the instance
// tries again. While no broker answers, it logs a warning and keeps trying, its leadership ends
// with the lease, and Pulse returns false without an error.
package neli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
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
	// a mock. Its LeaseContext ends with the lease, also while Pulse is not called.
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

// Deadline measures the interval between two checks for changes by Pulse: the last check is the
// last run. Its methods may be called from many goroutines.
type Deadline interface {
	// TryRun calls f if more than the interval has passed since the last run, and makes this call
	// the last run. It reports whether it called f.
	TryRun(f func()) bool
	// Elapsed returns the time since the last run.
	Elapsed() time.Duration
	// Expired reports whether more than the interval has passed since the last run.
	Expired() bool
	// Move sets the time of the last run.
	Move(to time.Time)
	// Last returns the time of the last run, time.Unix(0, 0) before the first.
	Last() time.Time
	// Remaining returns the rest of the interval; it is negative when the interval has passed.
	Remaining() time.Duration
}

type deadline struct {
	interval time.Duration
	last     atomic.Pointer[time.Time]
}

func newDeadline(interval time.Duration) *deadline {
	d := &deadline{interval: interval}
	d.Move(time.Unix(0, 0))
	return d
}

func (d *deadline) TryRun(f func()) bool {
	last, now := d.last.Load(), time.Now()
	if now.Sub(*last) <= d.interval || !d.last.CompareAndSwap(last, &now) {
		return false
	}
	f()
	return true
}

func (d *deadline) Elapsed() time.Duration   { return time.Since(d.Last()) }
func (d *deadline) Expired() bool            { return d.Elapsed() > d.interval }
func (d *deadline) Move(to time.Time)        { d.last.Store(&to) }
func (d *deadline) Last() time.Time          { return *d.last.Load() }
func (d *deadline) Remaining() time.Duration { return d.interval - d.Elapsed() }

// Loggers is the part of a Scribe that FromScribe needs: a function for each level, of type L.
type Loggers[L ~func(format string, args ...interface{})] interface {
	T() L
	D() L
	I() L
	W() L
	E() L
}

// FromScribe returns a logger that writes to a Scribe of goNELI's (package scribe of libstdgo), or
// to anything else with its five methods:
//
//	Scribe: neli.FromScribe(scribe.New(scribelogrus.Bind())),
func FromScribe[L ~func(format string, args ...interface{})](s Loggers[L]) *slog.Logger {
	return slog.New(&scribeHandler{pick: func(level slog.Level) func(string, ...interface{}) {
		switch {
		case level < slog.LevelDebug:
			return s.T()
		case level < slog.LevelInfo:
			return s.D()
		case level < slog.LevelWarn:
			return s.I()
		case level < slog.LevelError:
			return s.W()
		}
		return s.E()
	}})
}

// scribeHandler is a slog.Handler that writes one line: the message, then the attributes.
type scribeHandler struct {
	pick   func(slog.Level) func(string, ...interface{})
	prefix string // before the names of attributes
	before string // the attributes of the logger, as text
}

func (*scribeHandler) Enabled(context.Context, slog.Level) bool { return true }

func (s *scribeHandler) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message + s.before)
	r.Attrs(func(a slog.Attr) bool {
		line.WriteString(" " + s.prefix + a.String())
		return true
	})
	s.pick(r.Level)("%s", line.String())
	return nil
}

func (s *scribeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *s
	for _, a := range attrs {
		more.before += " " + s.prefix + a.String()
	}
	return &more
}

func (s *scribeHandler) WithGroup(name string) slog.Handler {
	more := *s
	more.prefix += name + "."
	return &more
}
