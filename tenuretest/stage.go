package tenuretest

import (
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
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
