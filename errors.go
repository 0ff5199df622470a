package tenure

import (
	"errors"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/nomination"
)

// Errors to branch on.
var (
	// ErrRunning: a Run, Campaign or Group.Join of this Election is under way already, or its last
	// term is open. If that was not resigned, its work may still be running: call Term.Resign when
	// it has stopped. The term is also open while its release goes on, which can outlast the
	// context of Resign.
	ErrRunning = errors.New("tenure: this election is already being campaigned for")
	// ErrDecline: lead and Handler.Elected return it if this process cannot lead now. The lease is
	// released, and after Tuning.Backoff the process campaigns again.
	ErrDecline = errors.New("tenure: leadership declined")
	// ErrLost is wrapped by every error about a term that has ended, with one of the causes.
	ErrLost = driver.ErrLost
	// ErrNoLeader is returned by HandOver: the record names no leader.
	ErrNoLeader = errors.New("tenure: nobody leads")
	// ErrShutdown is the cause of lead's context if the context of Run or Join has ended, or Leave
	// was called.
	ErrShutdown = errors.New("tenure: shutting down")
	// ErrDenied: the store refuses access, as after a wrong or withdrawn permission. It is
	// driver.ErrDenied, which errors of stores wrap.
	ErrDenied = driver.ErrDenied
	// ErrTooLate is returned by Term.Do: less time is left of the lease than the work needs.
	ErrTooLate = errors.New("tenure: not enough of the lease is left")
)

// Causes: why a term ended or why its work was asked to finish, besides StoreError and
// nomination.ErrWithdrawn. Find a cause with errors.Is in Term.Err, in context.Cause and in
// Event.Cause. ReasonOf turns causes into labels for metrics.
var (
	// ErrExpired: no renewal was confirmed before the deadline.
	ErrExpired = protocol.ErrExpired
	// ErrDeposed: another candidate holds the election.
	ErrDeposed = protocol.ErrDeposed
	// ErrOverdue: the work did not stop within FinishWithin after it was asked to finish.
	ErrOverdue = protocol.ErrOverdue
	// ErrAbandoned: lead ended by a panic or runtime.Goexit.
	ErrAbandoned = protocol.ErrAbandoned
	// ErrReleased: the term was resigned, or its work returned.
	ErrReleased = protocol.ErrReleased
	// ErrUnconfirmed: the store did not confirm the release in time. Either another candidate leads
	// already, or the lease expires by itself.
	ErrUnconfirmed = protocol.ErrUnconfirmed
	// ErrHandOver: a hand-over was requested.
	ErrHandOver = protocol.ErrHandOver
	// ErrIneligible: the leader is no longer eligible, by Election.SetEligible or by its
	// nomination.Gate. In EventWaiting, this candidate is not eligible.
	ErrIneligible = protocol.ErrIneligible
)

// StoreError reports that a record, or the store that holds it, is not as the members of the
// election left it: Kind says whether it was deleted, recreated, restored to an older state, or
// holds foreign or malformed bytes. It ends a term, and is the cause of EventAlarm.
//
//	var damage *tenure.StoreError
//	if errors.As(err, &damage) && damage.Kind == driver.Foreign {
type StoreError = driver.StoreError

// lostError is ErrLost with its cause.
type lostError struct{ cause error }

func (e *lostError) Error() string   { return ErrLost.Error() + ": " + e.cause.Error() }
func (e *lostError) Unwrap() []error { return []error{ErrLost, e.cause} }

// Reason is the kind of an error, as a short fixed word. There are few of them, so a Reason can be
// the label of a metric. The text of an error cannot: it may name keys and servers. See ReasonOf
// for all reasons.
type Reason string

// ReasonOf returns the reason of an error of this package, such as Event.Cause, Term.Err or
// context.Cause of a context of lead. Where an error wraps several, the reason is that of the
// cause: an error that wraps ErrLost and ErrExpired has the reason "expired". It is empty for nil.
// These are all reasons:
//
//	reason             error, or what it means without one
//	abandoned          ErrAbandoned
//	config             *ConfigError
//	connecting         driver.ErrConnecting
//	declined           ErrDecline
//	deleted            driver.Deleted, the Kind of a StoreError
//	denied             ErrDenied
//	deposed            ErrDeposed
//	expired            ErrExpired
//	foreign            driver.Foreign, the Kind of a StoreError
//	handed-over        ErrHandOver
//	ineligible         ErrIneligible
//	lost               ErrLost, by another cause
//	malformed          driver.Malformed, the Kind of a StoreError
//	no-answer          driver.ErrNoAnswer
//	no-leader          ErrNoLeader
//	nomination-lost    nomination.ErrWithdrawn
//	not-nominee        nobody leads, and Nomination.Only keeps this candidate from claiming
//	other-lease        another candidate leads, with another lease than this candidate has: a
//	                   failover takes the longer one, so give all the same
//	overdue            ErrOverdue
//	pool-busy          driver.ErrPoolBusy
//	recreated          driver.Recreated, the Kind of a StoreError
//	regressed          driver.Regressed, the Kind of a StoreError
//	released           ErrReleased
//	running            ErrRunning
//	same-id            the record names the ID of this candidate: of an earlier run, or of
//	                   another process with the same ID
//	short-lease        ShortLeaseError
//	shutdown           ErrShutdown
//	too-late           ErrTooLate
//	unconfirmed        ErrUnconfirmed
//	unfit              driver.ErrUnfit
//	unproven           later records may be missing from the store, so a candidate waits for the
//	                   longest lease that it knows
//	vacant             no record shows which candidate led last, so a candidate waits for the longer
//	                   of its own lease and that of the vacant record
//	other              any other error, such as one of the store or of the caller's own context
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	if damage, ok := errors.AsType[*StoreError](err); ok {
		return Reason(damage.Kind)
	}
	if wait, ok := errors.AsType[*waitError](err); ok && wait.is == nil {
		return wait.reason
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	if _, ok := errors.AsType[*ShortLeaseError](err); ok {
		return "short-lease"
	}
	if _, ok := errors.AsType[*ConfigError](err); ok {
		return "config"
	}
	if errors.Is(err, driver.ErrNoAnswer) { // which a ShortLeaseError may wrap
		return "no-answer"
	}
	if errors.Is(err, ErrLost) {
		return "lost"
	}
	return "other"
}

// reasons lists the errors that say more than ErrLost, which wraps them.
var reasons = []struct {
	err    error
	reason Reason
}{
	{ErrExpired, "expired"},
	{ErrDeposed, "deposed"},
	{ErrOverdue, "overdue"},
	{ErrAbandoned, "abandoned"},
	{ErrReleased, "released"},
	{ErrUnconfirmed, "unconfirmed"},
	{ErrHandOver, "handed-over"},
	{ErrIneligible, "ineligible"},
	{ErrShutdown, "shutdown"},
	{ErrDenied, "denied"},
	{nomination.ErrWithdrawn, "nomination-lost"},
	{driver.ErrUnfit, "unfit"},
	{ErrDecline, "declined"},
	{ErrRunning, "running"},
	{ErrNoLeader, "no-leader"},
	{ErrTooLate, "too-late"},
	{driver.ErrPoolBusy, "pool-busy"},
	{driver.ErrConnecting, "connecting"},
}
