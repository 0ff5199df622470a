package tenuretest

import (
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// Rival is the ID of the stage's own candidate. It leads at first, hands over when it is asked to,
// and seeks leadership again only for Ask and Fence.
const Rival = "rival"

// lease is long enough for a machine that stalls to renew it.
const lease = 30 * time.Second

// TB is the part of a *testing.T that a stage needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Stage is one election with a rival. Its methods stop the test if they cannot bring about their
// state; like t.Fatal they are for the goroutine that runs the test, one at a time. Store, Config
// and Election may be called from anywhere.
type Stage struct {
	t        TB
	election string
	store    *memory.Store
	rival    *rival
	asked    uint64 // the term that was asked to end

	mu    sync.Mutex
	seats map[string]*seat
}

// New opens a stage for the election of this name, on which the rival leads. It is closed by
// t.Cleanup.
func New(t TB, election string) *Stage {
	t.Helper()
	s := &Stage{t: t, election: election, store: memory.New(), seats: map[string]*seat{}}
	r, err := newRival(s.store, election)
	if err != nil {
		t.Fatalf("tenuretest: %v", err)
		return nil
	}
	s.rival = r
	t.Cleanup(r.leave)
	r.stand()
	s.Await(Rival)
	return s
}

// Store returns the store as the candidate of this ID reaches it: each has a line of its own, which
// Cut cuts. Elections of other names may use it too; on them there is no rival.
func (s *Stage) Store(id string) driver.Store {
	s.t.Helper()
	return s.seat(id).line
}

// Config returns a config for the candidate of this ID, with a lease of 30 s. Fields may be
// changed, other than ID and Clock: the clock is package time's, and Fence acts on it.
func (s *Stage) Config(id string) tenure.Config {
	s.t.Helper()
	return tenure.Config{ID: id, Lease: lease, Clock: s.seat(id).clock}
}

// Election returns a new candidate of this ID, of the stage's store and config.
func (s *Stage) Election(id string) *tenure.Election {
	s.t.Helper()
	e, err := tenure.New(s.Store(id), s.election, s.Config(id))
	if err != nil {
		s.t.Fatalf("tenuretest: %v", err)
	}
	return e
}

// seat returns that of a candidate. It is there from when it is first spoken of, since a test may
// well speak of a candidate before that gets to ask for its store.
func (s *Stage) seat(id string) *seat {
	s.t.Helper()
	if id == Rival {
		s.t.Fatalf("tenuretest: %q is the stage's own candidate", Rival)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seats[id] == nil {
		s.seats[id] = newSeat(s.store, s.election)
	}
	return s.seats[id]
}
