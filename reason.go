package tenure

import (
	"errors"

	"github.com/tenure-go/tenure/driver"
)

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
