package neli

import (
	"context"
	"errors"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// ground is the base of an election.
type ground interface {
	// open returns the store, the first time or again.
	open(ctx context.Context) (driver.Store, error)
	// join becomes a member of the group, which decides the nominee.
	join(ctx context.Context) (member, error)
	// metadata is published by a leader for others to check, and check returns an error if theirs
	// is wrong.
	metadata() map[string]string
	check(leader tenure.Leader) error
	// passing reports whether an error of open or join may be over when it is tried again.
	passing(err error) bool
	close() error
}

// member is a membership of the group; Close leaves it.
type member interface {
	driver.Nominator
	Close() error
}

// errSilent ends a session without calls of Pulse.
var errSilent = errors.New("neli: nobody has called Pulse for max.poll.interval.ms")
