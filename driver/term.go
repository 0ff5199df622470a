package driver

import (
	"context"
	"errors"
	"time"
)

// Term is the part of *tenure.Term that a package needs to write to a resource on behalf of a
// leader. Packages that belong to a store, such as its package fenced, take a Term, because a
// driver must not import package tenure.
type Term interface {
	// Token returns the fencing token. Every later term of the same election has a higher one.
	Token() uint64
	// Election returns the name of the term's election.
	Election() string
	// Err returns nil if this process may act for the election at this moment. Otherwise it wraps
	// ErrLost and the cause.
	Err() error
	// Remaining returns how much longer this process may act if no renewal succeeds from now on. It
	// returns 0 if Err is not nil.
	Remaining() time.Duration
	// Do calls fn if at least need is left of the lease, with a context that ends with ctx or with
	// the term. It returns fn's error. If the term is over, or less is left, it returns another
	// error without calling fn.
	Do(ctx context.Context, need time.Duration, fn func(context.Context) error) error
}

// Errors about a term. Package tenure has them under the same names.
var (
	// ErrLost is wrapped by every error about a term that has ended.
	ErrLost = errors.New("tenure: leadership lost")
	// ErrDeposed is the cause if another candidate holds the election.
	ErrDeposed = errors.New("another candidate holds the election")
)
