package tenure

import (
	"errors"

	"github.com/tenure-go/tenure/internal/protocol"
)

// What callers branch on.
var (
	// ErrRunning: a Run, Start or Campaign of this Election is under way already.
	ErrRunning = errors.New("tenure: this election is already being campaigned for")
	// ErrTermOpen: the last term of this Election was not resigned, so its work may still be running; or it was, and its
	// release, for which Resign was not allowed to wait, is still going on.
	ErrTermOpen = errors.New("tenure: the last term is still open; Resign says that its work has stopped")
	// ErrDecline is what lead returns when this process cannot lead now: the lease is released, and after a back-off
	// the process campaigns again.
	ErrDecline = errors.New("tenure: leadership declined")
	// ErrLost is wrapped by every error that tells of a term that has ended: see the causes below.
	ErrLost = errors.New("tenure: leadership lost")
	// ErrNoTerm: the Term is nil, as FromContext returns it for a context that no term gave out.
	ErrNoTerm = errors.New("there is no term: this context is not one of lead's or Term.Context's")
	// ErrNoLeader: nobody leads.
	ErrNoLeader = errors.New("tenure: nobody leads")
	// ErrShutdown is the cause with which the soft context ends when Run's own context did.
	ErrShutdown = errors.New("tenure: shutting down")
	// ErrSound: the election's record needs no Reset, or there is none.
	ErrSound = errors.New("tenure: the record is sound, or there is none")
	// ErrTooLate: less time is left of the lease than the work needs.
	ErrTooLate = errors.New("tenure: not enough of the lease is left")
)

// Why a term ended or is asked to end. They are found by errors.Is in Term.Err, in context.Cause and in Event.Cause.
var (
	// ErrExpired: no renewal was confirmed before the deadline.
	ErrExpired = protocol.ErrExpired
	// ErrDeposed: another candidate holds the election.
	ErrDeposed = protocol.ErrDeposed
	// ErrVanished: the record was deleted, purged, or expired in the store.
	ErrVanished = protocol.ErrVanished
	// ErrRemade: the store was deleted and made anew, so that nothing of what it held can be relied on.
	ErrRemade = protocol.ErrRemade
	// ErrRegressed: the store holds an older state than it once did, as after a backup was restored.
	ErrRegressed = protocol.ErrRegressed
	// ErrForeign: the key holds bytes that are no election record. They are never overwritten, and nobody leads.
	ErrForeign = protocol.ErrForeign
	// ErrMalformed: the key holds a record that breaks a limit of the format.
	ErrMalformed = protocol.ErrMalformed
	// ErrOverdue: the work did not stop within FinishWithin of being asked.
	ErrOverdue = protocol.ErrOverdue
	// ErrAbandoned: lead ended by a panic or runtime.Goexit.
	ErrAbandoned = protocol.ErrAbandoned
	// ErrReleased: the term was resigned.
	ErrReleased = protocol.ErrReleased
	// ErrUnconfirmed: the store did not confirm the release in time; the lease runs out by itself.
	ErrUnconfirmed = protocol.ErrUnconfirmed
	// ErrHandOver: somebody asked the leader to hand over.
	ErrHandOver = protocol.ErrHandOver
	// ErrNominationLost: the leader is no longer the nominee of its Config.Nominator.
	ErrNominationLost = protocol.ErrNominationLost
	// ErrIneligible: the leader is not eligible any more, as Election.SetEligible or the
	// driver.Gate of its Nominator said.
	ErrIneligible = protocol.ErrIneligible
)

// lostError is ErrLost with its cause.
type lostError struct{ cause error }

func (e *lostError) Error() string   { return ErrLost.Error() + ": " + e.cause.Error() }
func (e *lostError) Unwrap() []error { return []error{ErrLost, e.cause} }
