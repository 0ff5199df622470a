// Package tenuretest helps to test code that leads or waits to lead. It gives the code a real
// election, in which the test decides which candidate is elected. Use it to test what your program
// does when it is elected, asked to finish, fenced, cut off or suspended.
//
// Nothing in it is a mock, so contexts, errors and tokens are as in production. The store is
// driver/memory, and the candidates are those of the code under test. One more candidate, the
// [Rival], leads until the test elects one of them.
//
//	func TestBillingStopsWhenItIsFenced(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			stage := tenuretest.New(t, "billing")
//			service := start(t, stage.Store("node-1"), stage.Config("node-1"))
//			stage.Elect("node-1")
//			term := <-service.began
//			stage.Fence()
//			if err := <-service.ended; !errors.Is(err, tenure.ErrLost) {
//				t.Errorf("the work stopped with %v", err)
//			}
//			if rival := stage.Leader(); rival.Term <= term.Token() {
//				t.Errorf("the rival's token is %d, the service's was %d", rival.Term, term.Token())
//			}
//		})
//	}
//
// Call New within a testing/synctest bubble: there, waiting costs no time. Without a bubble
// everything works too, in real time. Then the lease of a leader that [Stage.Cut] cuts off takes 30
// s to expire, unless the test shortens Config.Lease.
//
// The stage sees the record in the store. An elected candidate learns of it a moment later, and
// only then is its function called. So let the test wait for an effect of its code, as on
// service.began above.
package tenuretest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/record"
)

// Rival is the ID of the stage's own candidate. The rival leads at first, hands over when it is
// asked to, and campaigns again only for Ask and Fence.
const Rival = "rival"

// lease is long enough for a machine that stalls to renew it.
const lease = 30 * time.Second

// TB is the part of a *testing.T that a stage needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Stage is one election with a rival. Methods that wait for a state stop the test by t.Fatalf after
// 2 minutes, in virtual time within a bubble. So call methods only from the goroutine that runs the
// test, one at a time. Store, Config and Election may be called from any goroutine; they call
// t.Fatalf only for the ID Rival and for an invalid ID.
type Stage struct {
	t         TB
	election  string
	store     *memory.Store
	rival     *rival
	askedTerm uint64 // the term whose leader was asked to hand over

	mu         sync.Mutex
	candidates map[string]*candidate
}

// New opens a stage for the election of this name, and returns when the rival leads. It closes the
// stage by t.Cleanup. A name that is not valid stops the test.
func New(t TB, election string) *Stage {
	t.Helper()
	s := &Stage{t: t, election: election, store: memory.New(), candidates: map[string]*candidate{}}
	r, err := newRival(s.store, election)
	if err != nil {
		t.Fatalf("tenuretest: %v", err)
		return nil
	}
	s.rival = r
	t.Cleanup(r.close)
	r.seekLeadership()
	s.Await(Rival)
	return s
}

// Store returns the store for the candidate of this ID. Each candidate has its own connection to
// the store, which Cut cuts. Elections of other names may use the store too; they have no rival.
func (s *Stage) Store(id string) driver.Store {
	s.t.Helper()
	return s.candidate(id).store
}

// Config returns a config for the candidate of this ID, with a lease of 30 s. The test may change
// all fields but ID and Clock. Clock follows package time, and Fence sets it forward.
func (s *Stage) Config(id string) tenure.Config {
	s.t.Helper()
	return tenure.Config{ID: id, Lease: lease, Clock: s.candidate(id).clock}
}

// Election returns a new candidate of this ID, made with Store and Config.
func (s *Stage) Election(id string) *tenure.Election {
	s.t.Helper()
	e, err := tenure.New(s.Store(id), s.election, s.Config(id))
	if err != nil {
		s.t.Fatalf("tenuretest: %v", err)
	}
	return e
}

// candidate returns the candidate of this ID, and makes it on first use: a test may name a
// candidate before the code under test asks for its store.
func (s *Stage) candidate(id string) *candidate {
	s.t.Helper()
	if id == Rival {
		s.t.Fatalf("tenuretest: %q is the stage's own candidate", Rival)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.candidates[id] == nil {
		s.candidates[id] = newCandidate(s.store, s.election)
	}
	return s.candidates[id]
}

// Elect makes the candidate of this ID the leader and returns once it leads. As soon as the
// candidate follows the election, Elect asks the present leader to hand over to it; that leader may
// finish its work first. A candidate that leads already, and was asked to finish, also finishes
// first and is then elected again.
func (s *Stage) Elect(id string) {
	s.t.Helper()
	c := s.candidate(id)
	s.waitUntil(fmt.Sprintf("%q is not elected", id), func(now tenure.Leader) bool {
		asked := now.Term == s.askedTerm
		if now.Exists() && now.ID != id && !asked && c.follows() {
			_ = s.askOnce(now, id) // waitUntil tries again
		}
		return now.ID == id && !asked
	})
}

// Ask waits until a candidate of the test leads, and asks it to finish its work and hand over to
// the rival: the context of its work ends, and that of the lease stays open. Ask returns when the
// request is in the store; Await(Rival) waits until the work has finished and the rival leads.
func (s *Stage) Ask() {
	s.t.Helper()
	now, ok := s.awaitTestLeader()
	if !ok {
		return
	}
	s.rival.seekLeadership()
	if err := s.askOnce(now, Rival); err != nil {
		s.t.Fatalf("tenuretest: %v", err)
	}
}

// askOnce asks a leader to hand over, and records its term, so that it is asked once.
func (s *Stage) askOnce(now tenure.Leader, to string) error {
	err := s.rival.handOver(to)
	if err == nil {
		s.askedTerm = now.Term
	}
	return err
}

// Fence waits until a candidate of the test leads, and then ends its term. The candidate sees the
// same as if its process had been suspended until its lease expired and the rival was elected. When
// Fence returns, Term.Err wraps tenure.ErrExpired, both contexts have ended, and the rival leads
// with a higher token. It stops the test if the leader does not use the Clock of Config.
func (s *Stage) Fence() {
	s.t.Helper()
	fenced, ok := s.awaitTestLeader()
	if !ok {
		return
	}
	c := s.candidate(fenced.ID)
	if !c.clock.wasRead() {
		s.t.Fatalf("tenuretest: %q does not use the clock of Config(%q), so its lease does not end at once", fenced.ID, fenced.ID)
		return
	}
	defer c.suspend()()
	var expired time.Time
	s.waitUntil("the rival is not elected", func(now tenure.Leader) bool {
		s.rival.seekLeadership()
		switch {
		case now.Term == fenced.Term:
			expired = s.rival.expireLease(fenced, expired)
		case now.Exists() && now.ID != Rival && now.Term != s.askedTerm:
			_ = s.askOnce(now, Rival) // it claimed what the fenced leader released
		}
		return now.ID == Rival
	})
}

// Cut separates a candidate from the store without an error: its calls hang until they time out. If
// it leads, its lease expires. Then another candidate that campaigns is elected; the rival does not
// campaign.
func (s *Stage) Cut(id string) {
	s.t.Helper()
	s.candidate(id).store.Partition()
}

// Heal undoes Cut. Calls that already hang still time out.
func (s *Stage) Heal(id string) {
	s.t.Helper()
	s.candidate(id).store.Heal()
}

// Await waits until the candidate of this ID leads, or, if the ID is empty, until there is no
// leader. It does nothing to bring that about.
func (s *Stage) Await(id string) {
	s.t.Helper()
	s.waitUntil(fmt.Sprintf("%q does not lead", id), func(now tenure.Leader) bool { return now.ID == id })
}

// awaitTestLeader waits until a candidate of the test leads, and returns that leader; false if none
// does.
func (s *Stage) awaitTestLeader() (l tenure.Leader, ok bool) {
	s.t.Helper()
	ok = s.waitUntil("no candidate of the test's leads", func(now tenure.Leader) bool {
		l = now
		return now.Exists() && now.ID != Rival
	})
	return l, ok
}

const (
	// waitLimit is how long the stage waits: longer than the work may take to finish, or the lease
	// to expire if it does not, even on a slow machine. Only a failing test waits so long.
	waitLimit = 2 * time.Minute
	// firstPoll and longestPoll bound the time between two checks where no change of the election
	// announces the next state.
	firstPoll   = 10 * time.Millisecond
	longestPoll = 100 * time.Millisecond
)

// Leader returns the leader in the store, or the zero Leader if there is none. It waits until the
// rival has seen the present record, for 2 minutes at most.
func (s *Stage) Leader() tenure.Leader {
	ctx, cancel := context.WithTimeout(s.rival.ctx, waitLimit)
	defer cancel()
	now, _ := s.rival.election.Wait(ctx, s.rivalIsUpToDate) // also has a status if ctx ends
	return now.Leader
}

// rivalIsUpToDate reports whether the rival sees the present state of the store.
func (s *Stage) rivalIsUpToDate(seen tenure.Status) bool {
	entry, err := s.store.Read(s.rival.ctx, s.election)
	if err != nil {
		return true // the stage is closed
	}
	r, err := record.Decode(entry.Value)
	if err != nil || !r.Held() {
		return !seen.Leader.Exists()
	}
	return seen.Record.Kind == admin.Held && seen.Record.Term == r.Term
}

// waitUntil checks at every change of the election, and from time to time, whether a state is
// reached. If it is not reached within waitLimit, it stops the test.
func (s *Stage) waitUntil(failure string, reached func(now tenure.Leader) bool) bool {
	s.t.Helper()
	end := time.NewTimer(waitLimit)
	defer end.Stop()
	for wait := firstPoll; ; wait = min(wait*5/4, longestPoll) {
		if reached(s.Leader()) {
			return true
		}
		select {
		case <-s.rival.changed:
		case <-time.After(wait):
		case <-end.C:
			s.t.Fatalf("tenuretest: %s within %v: %s", failure, waitLimit, s.describe())
			return false
		}
	}
}

// describe names the leader, and the candidates that do not follow the election: the usual reason
// why a wait fails.
func (s *Stage) describe() string {
	var b strings.Builder
	if l := s.Leader(); l.Exists() {
		fmt.Fprintf(&b, "%q leads", l.ID)
	} else {
		b.WriteString("nobody leads")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.candidates)) {
		if !s.candidates[id].follows() {
			fmt.Fprintf(&b, ", %q does not follow the election %q", id, s.election)
		}
	}
	return b.String()
}
