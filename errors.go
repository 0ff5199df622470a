package tenure

import (
	"errors"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// Errors to branch on.
var (
	// ErrRunning: a Run, Campaign or Group.Join of this Election is under way already.
	ErrRunning = errors.New("tenure: this election is already being campaigned for")
	// ErrTermOpen: the last term of this Election is open. If it was not resigned, its work may
	// still be running: call Term.Resign when it has stopped. The term is also open while its
	// release goes on, which can outlast the context of Resign.
	ErrTermOpen = errors.New("tenure: the last term is still open; call Resign when its work has stopped")
	// ErrDecline: lead and Handler.Elected return it if this process cannot lead now. The lease is
	// released, and after Tuning.Backoff the process campaigns again.
	ErrDecline = errors.New("tenure: leadership declined")
	// ErrLost is wrapped by every error about a term that has ended: see the causes below.
	ErrLost = driver.ErrLost
	// ErrNoLeader is returned by HandOver: the record names no leader.
	ErrNoLeader = errors.New("tenure: nobody leads")
	// ErrShutdown is the cause of the soft context if the context of Run or Join has ended, or
	// Leave was called.
	ErrShutdown = errors.New("tenure: shutting down")
	// ErrDenied: the store refuses access, as after a wrong or withdrawn permission. It is
	// driver.ErrDenied, which errors of stores wrap.
	ErrDenied = driver.ErrDenied
	// ErrUnfit: the store was seen to break a promise that elections rely on, so nothing is written
	// to it. It is driver.ErrUnfit, which errors of stores wrap.
	ErrUnfit = driver.ErrUnfit
	// ErrVacant: a candidate waits one lease, because no record shows which candidate led last.
	ErrVacant = errors.New("tenure: no record shows which candidate led last")
	// ErrUnproven: a candidate waits one lease, because later records may be missing from the
	// store.
	ErrUnproven = errors.New("tenure: later records may be missing from the store")
	// ErrOtherLease: another candidate leads, with another lease than this candidate has.
	ErrOtherLease = errors.New("tenure: the leader has another lease than this candidate")
	// ErrSameID: the record names the ID of this candidate. It is of an earlier run, or another
	// process has the same ID.
	ErrSameID = errors.New("tenure: the record names the ID of this candidate")
	// ErrNotNominee: nobody leads, and Config.NomineeOnly keeps this candidate from claiming.
	ErrNotNominee = errors.New("tenure: only the nominee may lead")
	// ErrTooLate is returned by Term.Do: less time is left of the lease than the work needs.
	ErrTooLate = errors.New("tenure: not enough of the lease is left")
)

// Causes: why a term ended or why its work was asked to finish. Find a cause with errors.Is in
// Term.Err, in context.Cause and in Event.Cause. ReasonOf turns causes into labels for metrics.
var (
	// ErrExpired: no renewal was confirmed before the deadline.
	ErrExpired = protocol.ErrExpired
	// ErrDeposed: another candidate holds the election.
	ErrDeposed = protocol.ErrDeposed
	// ErrVanished: the record was deleted, purged, or expired in the store.
	ErrVanished = protocol.ErrVanished
	// ErrRemade: the store was recreated, or its server was restarted or replaced, so its former
	// contents prove nothing.
	ErrRemade = protocol.ErrRemade
	// ErrRegressed: the store holds an older state than before, as after a restored backup.
	ErrRegressed = protocol.ErrRegressed
	// ErrForeign: the key holds bytes that are not an election record. No election overwrites them,
	// and nobody leads.
	ErrForeign = protocol.ErrForeign
	// ErrMalformed: the key holds a record that breaks a limit of the format, or whose term is not
	// credible (docs/protocol.md).
	ErrMalformed = protocol.ErrMalformed
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
	// ErrNominationLost: the leader is no longer the nominee of its Config.Nominator.
	ErrNominationLost = protocol.ErrNominationLost
	// ErrIneligible: the leader is no longer eligible, by Election.SetEligible or by the
	// driver.Gate of its Nominator. In EventWaiting, this candidate is not eligible.
	ErrIneligible = protocol.ErrIneligible
)

// lostError is ErrLost with its cause.
type lostError struct{ cause error }

func (e *lostError) Error() string   { return ErrLost.Error() + ": " + e.cause.Error() }
func (e *lostError) Unwrap() []error { return []error{ErrLost, e.cause} }

// Reason is the kind of an error, as a short fixed word. There are few of them, so a Reason can be
// the label of a metric. The text of an error cannot: it may name keys and servers. See ReasonOf
// for all reasons. To branch on an error use errors.Is.
type Reason string

// ReasonOf returns the reason of an error of this package, such as Event.Cause, Term.Err or
// context.Cause of a context of lead. Where an error wraps several, the reason is that of the
// cause: an error that wraps ErrLost and ErrExpired has the reason "expired". These are all
// reasons:
//
//	""                 no error
//	abandoned          ErrAbandoned
//	config             ConfigError
//	connecting         driver.ErrConnecting
//	declined           ErrDecline
//	deleted            ErrVanished
//	denied             ErrDenied
//	deposed            ErrDeposed
//	expired            ErrExpired
//	foreign            ErrForeign
//	handed-over        ErrHandOver
//	ineligible         ErrIneligible
//	lost               ErrLost, by another cause
//	malformed          ErrMalformed
//	no-answer          driver.ErrNoAnswer
//	no-leader          ErrNoLeader
//	nomination-lost    ErrNominationLost
//	not-nominee        ErrNotNominee
//	other-lease        ErrOtherLease
//	overdue            ErrOverdue
//	pool-busy          driver.ErrPoolBusy
//	recreated          ErrRemade
//	regressed          ErrRegressed
//	released           ErrReleased
//	running            ErrRunning
//	same-id            ErrSameID
//	short-lease        ShortLeaseError
//	shutdown           ErrShutdown
//	term-open          ErrTermOpen
//	too-late           ErrTooLate
//	unconfirmed        ErrUnconfirmed
//	unfit              ErrUnfit
//	unproven           ErrUnproven
//	vacant             ErrVacant
//	other              any other error, such as one of the store or of the caller's own context
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
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
	{ErrVanished, "deleted"},
	{ErrRemade, "recreated"},
	{ErrRegressed, "regressed"},
	{ErrForeign, "foreign"},
	{ErrMalformed, "malformed"},
	{ErrOverdue, "overdue"},
	{ErrAbandoned, "abandoned"},
	{ErrReleased, "released"},
	{ErrUnconfirmed, "unconfirmed"},
	{ErrHandOver, "handed-over"},
	{ErrNominationLost, "nomination-lost"},
	{ErrIneligible, "ineligible"},
	{ErrShutdown, "shutdown"},
	{ErrDenied, "denied"},
	{ErrUnfit, "unfit"},
	{ErrDecline, "declined"},
	{ErrRunning, "running"},
	{ErrTermOpen, "term-open"},
	{ErrNoLeader, "no-leader"},
	{ErrTooLate, "too-late"},
	{ErrVacant, "vacant"},
	{ErrUnproven, "unproven"},
	{ErrOtherLease, "other-lease"},
	{ErrSameID, "same-id"},
	{ErrNotNominee, "not-nominee"},
	{driver.ErrPoolBusy, "pool-busy"},
	{driver.ErrConnecting, "connecting"},
}
