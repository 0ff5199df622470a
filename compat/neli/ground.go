package neli

import (
	"context"
	"errors"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// ground is the store and the group of an election: Kafka, except in tests.
type ground interface {
	// open returns the store, the first time or again.
	open(ctx context.Context) (driver.Store, error)
	// join becomes a member of the group, which decides the nominee.
	join(ctx context.Context) (member, error)
	// metadata is published by a leader, so that other candidates can check it: check returns an
	// error if the metadata of another leader is wrong.
	metadata() map[string]string
	check(leader tenure.Leader) error
	// passing reports whether another try may succeed after this error of open or join.
	passing(err error) bool
	close() error
}

// member is a membership of the group; Close leaves it.
type member interface {
	driver.Nominator
	Close() error
}

// errSilent ends a session without calls of Pulse.
var errSilent = errors.New("neli: Pulse was not called for max.poll.interval.ms")
