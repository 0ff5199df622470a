package neli

import (
	"context"
	"errors"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// ground is what an election stands on.
type ground interface {
	// open returns the store, the first time or again.
	open(ctx context.Context) (driver.Store, error)
	// join becomes a member of the group, which says who is nominated.
	join(ctx context.Context) (member, error)
	// metadata is what a leader publishes for others to check, and check says what is wrong with theirs.
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

// errSilent ends a session in which nobody pulses.
var errSilent = errors.New("neli: nobody has called Pulse for max.poll.interval.ms")
