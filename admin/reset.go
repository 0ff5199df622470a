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
// the operator's remedy: no candidate ever overwrites a foreign value, and each waits up to an hour
// for a malformed record. Before you call it, make sure that the bytes belong to nothing else, and
// that no candidate leads with a longer lease than the given one. A leader that is still there
// steps down when it sees the vacant record.
//
// The lease is that of the members, from 1 ms to 1 h. No candidate is elected before the vacant
// record has been visible for the longer of this lease and the one that the malformed record shows.
// A lease in that record that is out of range counts for nothing. The next term is above every term
// that the store vouches for and the one that the record shows.
//
// Reset returns the least time in which no candidate can be elected. The wait is longer: the first
// candidate puts one more vacant record in place of this one, and all candidates wait for that too.
// It returns ErrSound if the record is sound or there is none, an error that wraps
// driver.ErrConflict if it has changed during the call, one that wraps driver.ErrDenied if rights
// are missing, and any other error of the store's, after which the record may be reset or not.
func Reset(ctx context.Context, store driver.Store, name string, lease time.Duration) (wait time.Duration, err error) {
	if lease < time.Millisecond || lease > record.MaxLease {
		return 0, fmt.Errorf("tenure: lease is %v; it must be from 1ms to %v", lease, record.MaxLease)
	}
	// never campaigns
	operator := protocol.New(&protocol.Config{Lease: lease, Rand: record.Random}, "")
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
