// Package deposed makes leaders that are deposed, for tests of fences. It works in real time and in
// the bubbles of testing/synctest.
package deposed

import (
	"crypto/rand"
	"errors"
	"sync"
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

// Leader is a leader with its own access to the election's store, and its own clock.
type Leader struct {
	Term     *tenure.Term
	election *Election
	store    faults.Store
	clock    *settable
}

// settable is a clock that a test stops or puts forward.
type settable struct {
	clock.Standard

	mu     sync.Mutex
	at     *clock.Reading // where it stands still, if not nil
	ahead  time.Duration
	timers map[*timer]bool
}

type timer struct {
	stop func() bool
	ring func()
}

// Now implements clock.Clock.
func (c *settable) Now() clock.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != nil {
		return *c.at
	}
	r := c.Standard.Now()
	r.Mono, r.Raw, r.Boot = r.Mono+c.ahead, r.Raw+c.ahead, r.Boot+c.ahead
	return r
}

// AfterFunc implements clock.Clock.
func (c *settable) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{c.Standard.AfterFunc(d, f), f}
	c.timers[t] = true
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, t)
		return t.stop()
	}
}

// stand stops the clock, or lets it go on.
func (c *settable) stand(still bool) {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at = nil; still {
		c.at = &now
	}
}

// jump puts the clock beyond the end of each lease.
func (c *settable) jump() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += 2 * lease
}

// ring lets all timers ring.
func (c *settable) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for t := range c.timers {
		if delete(c.timers, t); t.stop() {
			go t.ring()
		}
	}
}

// Elect returns once the candidate leads. An earlier leader must have stopped leading.
func (e *Election) Elect(id string) *Leader {
	e.t.Helper()
	l := &Leader{election: e, store: faults.New(e.store, 0, faults.Plan{}), clock: &settable{timers: map[*timer]bool{}}}
	candidate, err := tenure.New(l.store, e.name, tenure.Config{ID: id, Lease: lease, Clock: l.clock})
	if err == nil {
		l.Term, err = candidate.Campaign(wait.Context(e.t))
	}
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		l.clock.stand(false)
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
	l.clock.stand(true)
	next := l.replace(id)
	if err := errors.Join(l.Term.Err(), next.Term.Err()); err != nil {
		e.t.Fatalf("one of them knows: %v", err)
	}
	return next
}

// Pause lets the lease end as if the process was stopped: no timer has rung yet when it goes on.
func (l *Leader) Pause() { l.clock.jump() }

// CutOff cuts the leader off from the store until its lease has ended.
func (l *Leader) CutOff() {
	l.store.Partition()
	l.clock.jump()
	l.clock.ring()
}

// Depose cuts the leader off and returns when another candidate leads. The leader knows that its
// term is over.
func (l *Leader) Depose(id string) *Leader {
	l.election.t.Helper()
	l.CutOff()
	next := l.replace(id)
	if err := l.Term.Err(); !errors.Is(err, tenure.ErrLost) {
		l.election.t.Fatalf("two lead: %v", err)
	}
	return next
}

// replace lets another candidate be elected.
func (l *Leader) replace(id string) *Leader {
	e := l.election
	e.t.Helper()
	l.store.Partition()
	wait.Until(e.t, "the record says that the term is over", e.vacate)
	next := e.Elect(id)
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
