// Package bridge lets other packages of this module use what package tenure has and does not
// export. Package tenure sets the functions when it is initialized.
package bridge

import (
	"time"

	"github.com/tenure-go/tenure/clock"
)

// Renewed is described at timing.Renewed. The term is a *tenure.Term.
var Renewed func(term any) <-chan struct{}

// ShownAt returns a time at or after which the store held the record that Status shows: when the
// read of it was sent, or when the push of it came. It returns false if none is known, as before
// the first read, or after a pause in which a push may have waited. The election is a
// *tenure.Election.
var ShownAt func(election any) (clock.Instant, bool)

// LeastLease returns the shortest lease above another, in whole seconds, that leaves two and a half
// times took for one request; 0 if there is none. The configuration is a tenure.Config.
var LeastLease func(config any, above, took time.Duration) time.Duration

// FlushTrace waits until the lines of a trace are written, for the given time at most. The election
// is a *tenure.Election.
var FlushTrace func(election any, within time.Duration)

// Facts are what package schedule needs to know of the election of a term.
type Facts struct {
	// ID is that of the candidate.
	ID    string
	Clock clock.Clock
	// Attempt is the time that one store operation may take.
	Attempt time.Duration
	// Lease is the longest lease that this member knows of.
	Lease time.Duration
	// HistoryChanged is Status.HistoryChanged.
	HistoryChanged time.Time
}

// FactsOf returns the facts of a term, which is a *tenure.Term and not nil.
var FactsOf func(term any) Facts
