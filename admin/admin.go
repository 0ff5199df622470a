// Package admin is for operators and their tools. A [Record] describes the value that a store holds
// for an election; the Status of package tenure carries it. [Reset] replaces a value that stops the
// election. Programs that only campaign or observe need neither.
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

// Kind is the kind of value that the store holds under the name of an election.
type Kind string

// The kinds of value.
const (
	Absent    Kind = "absent"    // nothing
	Vacant    Kind = "vacant"    // no leader yet: put by a candidate where nothing was, or by Reset
	Held      Kind = "held"      // the record of a leader; its lease may have expired
	Released  Kind = "released"  // the record of a former leader
	Malformed Kind = "malformed" // a record with a field or a term out of range
	Foreign   Kind = "foreign"   // not an election record
)

// Record describes the value in the store, for display. To find out whether a program may act, use
// Term.Err of package tenure instead.
type Record struct {
	// Kind is empty before the store was read for the first time.
	Kind Kind
	// Problem describes the fault of a malformed or foreign value; nil otherwise.
	Problem error
	// LeaderID is the ID of the present or last leader. It is empty if there was none.
	LeaderID string
	// Term is the fencing token of that leader; in a vacant record, the highest known term.
	Term uint64
	// Lease is the shortest time that other candidates wait after they first saw this record,
	// unless it is released. If a malformed record does not show it, Lease is 1 h, the longest
	// lease.
	Lease time.Duration
	// Seen is when this process first saw the leader's last write, by its wall clock. No other
	// candidate is elected before Lease has passed since then, unless the record is released.
	Seen time.Time
	// Updated is the leader's wall clock at that write.
	Updated time.Time
	// Priority is the leader's priority.
	Priority int
	// Request is the hand-over request in the record, or nil. A renewal removes it, unless it is an
	// offer that is less than two leases old.
	Request *Request
}

// Request is a request for the leader to hand over.
type Request struct {
	To string // the ID of the wanted successor; empty: any candidate
	By string // the ID of the candidate or operator that asks
	// Offer reports that the leader goes on until the candidate To has accepted.
	Offer bool
}

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

// Member is what a process says of its own part in an election, for people. No decision depends on
// it. Election.Member of package tenure returns it, and candidates answer with it over a
// driver.Presence.
type Member struct {
	Election    string    `json:"election"`
	ID          string    `json:"id"`
	State       string    `json:"state"` // a tenure.State
	Eligible    bool      `json:"eligible"`
	Priority    int       `json:"priority"`
	LeaseMillis int64     `json:"lease_ms,omitempty"`
	Address     string    `json:"address,omitempty"`
	Incarnation string    `json:"incarnation,omitempty"` // as in tenure.Leader
	LastContact time.Time `json:"last_contact,omitzero"` // by the wall clock of the process
	Problem     string    `json:"problem,omitempty"`     // the error of tenure.Status.Health
}
