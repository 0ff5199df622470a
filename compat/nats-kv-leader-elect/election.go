package election

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// Election is one candidate. NewElection returns an *Elector, which has methods beyond these.
type Election interface {
	// Start takes part until ctx ends or Stop is called, and blocks until then.
	Start(ctx context.Context) error
	// Stop ends Start, soon.
	Stop()
	// IsLeader reports whether this candidate leads, by a lease that is valid now.
	IsLeader() bool
	// State returns the present state of this candidate.
	State() State
}

// State is the state of a candidate.
type State uint

// The states.
const (
	// UnknownState is that of a candidate that does not take part: not yet, or no more.
	UnknownState State = 0
	// CandidateState is that of one that takes part and does not lead.
	CandidateState State = 1
	// LeaderState is that of the leader.
	LeaderState State = 2
)

// String is unknown, candidate or leader.
func (s State) String() string {
	switch s {
	case UnknownState:
		return "unknown"
	case CandidateState:
		return "candidate"
	case LeaderState:
		return "leader"
	}
	return fmt.Sprintf("State(%d)", uint(s))
}

// statusWithin bounds the one request of New.
const statusWithin = 5 * time.Second

// NewElection returns a candidate of the given name for the election on the key of the bucket. The
// name is for people: two candidates may have the same. It asks for the bucket's TTL, and returns
// an error if the server does not tell it, if no lease can be made of it, or if a name, the key or
// an option is wrong. It starts nothing.
func NewElection(name string, key string, bucket nats.KeyValue, opts ...Option) (Election, error) {
	o := settle(opts)
	if bucket != nil {
		status, err := bucket.Status()
		if err != nil {
			return nil, unreadable(bucket.Bucket(), err)
		}
		o.bucket = bucket.Bucket()
		if status != nil {
			o.ttl = status.TTL()
		}
		o.open = func(with ...natskv.Option) driver.Store { return natskv.FromLegacyKeyValue(bucket, with...) }
	}
	e, err := newElector(name, key, o)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// New is NewElection for a handle of package jetstream. It waits 5 s at most for the bucket's TTL.
func New(name string, key string, bucket jetstream.KeyValue, opts ...Option) (*Elector, error) {
	o := settle(opts)
	if bucket != nil {
		ctx, cancel := context.WithTimeout(context.Background(), statusWithin)
		defer cancel()
		status, err := bucket.Status(ctx)
		if err != nil {
			return nil, unreadable(bucket.Bucket(), err)
		}
		o.bucket = bucket.Bucket()
		if status != nil {
			o.ttl = status.TTL()
		}
		o.open = func(with ...natskv.Option) driver.Store { return natskv.FromKeyValue(bucket, with...) }
	}
	return newElector(name, key, o)
}

func unreadable(bucket string, err error) error {
	return fmt.Errorf("election: the TTL of bucket %s: %w", bucket, err)
}
