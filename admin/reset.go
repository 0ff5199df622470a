package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/update"
)

// ErrSound is returned by Reset if the election's record needs no reset, or there is none.
var ErrSound = errors.New("tenure: the record is sound, or there is none")

// systemClock is replaced in tests.
var systemClock clock.Clock = clock.System{}

// Reset replaces a foreign or malformed value by a vacant record, with one compare-and-swap. It is
// a remedy for operators: no candidate ever overwrites a foreign value, and each waits up to 1 h
// before it replaces a malformed record. Before you call it, make sure that the bytes belong to
// nothing else, and that no candidate leads with a longer lease than the given one. A leader that
// is still there steps down when it sees the vacant record.
//
// The lease is that of the members, from 1 ms to 1 h. No candidate is elected before the vacant
// record has been visible for the longer of this lease and the one that the malformed record shows.
// Reset ignores the lease of that record if it is 1 h or out of range. The next term is above every
// term that the store vouches for. It is also above the term in the record, unless that term is not
// credible: 2^40 or more above every term that the store vouches for.
//
// Reset returns the shortest time until a candidate can be elected. The real wait is longer: the
// first candidate replaces this record by one more vacant record, and all candidates wait for that
// too.
//
// It returns ErrSound if the record is sound or there is none, an error that wraps
// driver.ErrConflict if it has changed during the call, and one that wraps driver.ErrDenied if the
// client lacks the right to read or write. After any other error of the store, the record may or
// may not have been reset. Reset fails if the read and the write together take longer than a third
// of the lease.
func Reset(ctx context.Context, store driver.Store, name string, lease time.Duration) (wait time.Duration, err error) {
	if lease < time.Millisecond || lease > record.MaxLease {
		return 0, fmt.Errorf("tenure: lease is %v; it must be from 1ms to %v", lease, record.MaxLease)
	}
	operator := newOperator(lease)
	err = update.Once(ctx, store, systemClock, name, lease/3, func(entry driver.Entry) ([]byte, error) {
		vacant, ok := operator.Vacate(protocol.Decode(entry))
		if !ok {
			return nil, ErrSound
		}
		wait = vacant.Lease
		return record.Encode(vacant)
	})
	switch {
	case err == nil:
		return wait, nil
	case errors.Is(err, ErrSound):
		return 0, ErrSound
	}
	return 0, fmt.Errorf("tenure: election %q: reset: %w", name, err)
}

// EndLease replaces a sound record, or none, by a release, with one compare-and-swap, so that the
// next candidate need not wait for a long lease. Call it only if you know that no process leads,
// not even one that is cut off or stopped: such a leader would go on to act beside the next one. It
// is for a lease that would last too long: the leader that wrote it is dead, or members have seen
// it and wait for it after the record was deleted. The result is the term of the release; the next
// one is higher.
//
// The read and the write together take at most the time limit within. By is the name of the
// operator, for people, in at most 256 bytes; the release shows it as the leader's ID.
//
// Members wait all the same if they do not believe the store, for example because it was recreated
// since they started, or its database has failed over: restart those.
//
// EndLease returns an error if the value is foreign or malformed (see Reset), or if there is no
// record and the store's floor of the terms is not credible. It returns an error that wraps
// driver.ErrConflict if the record has changed during the call, and one that wraps driver.ErrDenied
// if the client lacks the right to read or write. After any other error of the store, the record
// may or may not have been replaced.
func EndLease(ctx context.Context, store driver.Store, name, by string, within time.Duration) (term uint64, err error) {
	operator := newOperator(within)
	err = update.Once(ctx, store, systemClock, name, within, func(entry driver.Entry) ([]byte, error) {
		release, err := operator.EndLease(protocol.Decode(entry), by)
		if err != nil {
			return nil, err
		}
		term = release.Term
		return record.Encode(release)
	})
	if err != nil {
		return 0, fmt.Errorf("tenure: election %q: end the lease: %w", name, err)
	}
	return term, nil
}

// newOperator returns a machine that never campaigns.
func newOperator(lease time.Duration) *protocol.Machine {
	return protocol.New(&protocol.Config{Lease: lease, Rand: record.Random}, "")
}
