// Package bridge lets other packages of this module use what package tenure has and does not
// export. Package tenure sets the functions when it is initialized.
package bridge

import "github.com/tenure-go/tenure/clock"

// Renewed is described at timing.Renewed. The term is a *tenure.Term.
var Renewed func(term any) <-chan struct{}

// ShownAt returns a time at or after which the store held the record that Status shows: when the
// read of it was sent, or when the push of it came. It returns false if none is known, as before
// the first read, or after a pause in which a push may have waited. The election is a
// *tenure.Election.
var ShownAt func(election any) (clock.Instant, bool)
