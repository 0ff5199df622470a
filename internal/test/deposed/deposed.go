// Package deposed makes leaders that do not know that they are deposed, for tests of fences.
package deposed

import (
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// lease is longer than all delays of the machine. No test waits for its end.
const lease = 5 * time.Minute

// Election is an election in a store of the test.
type Election struct {
	t     testing.TB
	store *memory.Store
	name  string
}

// NewElection returns an election without a leader.
func NewElection(t testing.TB, name string) *Election { return &Election{t, memory.New(), name} }

// Leader is a leader with its own access to the election's store, and a clock that can be stopped.
type Leader struct {
	Term     *tenure.Term
	election *Election
	store    faults.Store
	clock    *standing
}

// standing is a clock that stands still while its machine is frozen, so that the leader does not
// notice the pause.
type standing struct {
	clock.Clock
	at atomic.Pointer[clock.Reading]
}

func (c *standing) Now() clock.Reading {
	if at := c.at.Load(); at != nil {
		return *at
	}
	return c.Clock.Now()
}

// Elect returns once the candidate leads. An earlier leader must have stopped leading.
func (e *Election) Elect(id string) *Leader {
	e.t.Helper()
	l := &Leader{election: e, store: faults.New(e.store, 0, faults.Plan{}), clock: &standing{Clock: clock.System{}}}
	candidate, err := tenure.New(l.store, e.name, tenure.Config{ID: id, Lease: lease, Clock: l.clock})
	if err == nil {
		l.Term, err = candidate.Campaign(wait.Context(e.t))
	}
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		l.clock.at.Store(nil)
		l.store.Heal()
		_ = l.Term.Resign(wait.Context(e.t))
	})
	return l
}

// Supplant freezes the leader's clocks and returns when another candidate leads. Both then believe
// that they lead.
func (l *Leader) Supplant(id string) *Leader {
	e := l.election
	e.t.Helper()
	now := l.clock.Clock.Now()
	l.clock.at.Store(&now)
	l.store.Partition()
	wait.Until(e.t, "the record says that the term is over", e.vacate)
	next := e.Elect(id)
	if err := errors.Join(l.Term.Err(), next.Term.Err()); err != nil {
		e.t.Fatalf("one of them knows: %v", err)
	}
	if next.Term.Token() <= l.Term.Token() {
		e.t.Fatalf("token %d follows %d", next.Term.Token(), l.Term.Token())
	}
	return next
}

// vacate ends the present leader's lease without its knowledge, with the same effect as its expiry:
// the record becomes a released one. It reports whether no other write came in between.
func (e *Election) vacate() bool {
	e.t.Helper()
	entry, err := e.store.Read(wait.Context(e.t), e.name)
	if err != nil {
		e.t.Fatal(err)
	}
	r, err := record.Decode(entry.Value)
	if err != nil {
		e.t.Fatal(err)
	}
	r.Released, r.Nonce, r.Seq = true, rand.Text(), r.Seq+1
	value, err := record.Encode(r)
	if err != nil {
		e.t.Fatal(err)
	}
	_, err = e.store.CompareAndSwap(wait.Context(e.t), e.name, entry.Version, value)
	return err == nil
}
