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

// Election is one candidate. NewElection returns an *Elector, which has further methods.
type Election interface {
	// Start takes part until ctx ends or Stop is called, and blocks until then.
	Start(ctx context.Context) error
	// Stop makes Start return soon.
	Stop()
	// IsLeader reports whether this candidate leads and its lease is valid now.
	IsLeader() bool
	// State returns the present state of this candidate.
	State() State
}

// State is the state of a candidate.
type State uint

// The states.
const (
	// UnknownState: the candidate does not take part, because Start does not run.
	UnknownState State = 0
	// CandidateState: the candidate takes part and does not lead.
	CandidateState State = 1
	// LeaderState: the candidate leads.
	LeaderState State = 2
)

// String returns "unknown", "candidate" or "leader".
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

// NewElection returns a candidate for the election under the key in the bucket. The name is for
// people to read: two candidates may have the same one. NewElection reads the bucket's TTL. It
// returns an error if the server does not answer, if the TTL allows no lease, or if the name, the
// key or an option is wrong. The candidate takes part once Start is called.
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

// New is NewElection for a handle of package jetstream. It waits at most 5 s for the bucket's TTL.
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
