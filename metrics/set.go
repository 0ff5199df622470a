package metrics

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Set collects the metrics of the elections of one process on one store. Its methods may be called
// concurrently.
type Set struct {
	summary bool
	since   time.Time
	mu      sync.Mutex
	members map[*Member]struct{}
	byName  map[string]*Recorder
	dropped atomic.Uint64
	calls   [len(operations)][len(outcomes)]atomic.Uint64
	took    [len(operations)]histogram
}

// New returns a Set with series for each election: 18 for one. It suits up to about a thousand
// elections.
func New() *Set {
	return &Set{since: time.Now(), members: map[*Member]struct{}{}, byName: map[string]*Recorder{}}
}

// NewSummary returns a Set with sums over all elections instead of series for each. It suits a
// fleet: 10,000 elections have no more series than one.
func NewSummary() *Set {
	s := New()
	s.summary = true
	return s
}

// State is the state of this process in one election.
type State struct {
	Role Role
	// Term is the highest known term; 0 before the first.
	Term uint64
	// Lease is the lease as configured, Margin the last part of it, which a leader does not use.
	Lease, Margin time.Duration
	// Overdue: a term is over, and its work is not known to have stopped.
	Overdue bool
	// Unhealthy: this process could not take over, or its work is overdue.
	Unhealthy bool
}

// Member is the part of this process in one election of a Set.
type Member struct {
	*Recorder
	state func() (State, bool)
}

// Add adds an election to the Set. Package tenure calls it for each Election whose Config has the
// Set. Gather calls state, which returns false when the election is gone. Several elections of one
// name count together: Term, Lease and Margin are the largest, and all other values are sums.
func (s *Set) Add(name string, state func() (State, bool)) *Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.summary {
		name = ""
	}
	r := s.byName[name]
	if r == nil {
		r = &Recorder{set: s, name: strings.Clone(name), since: time.Now()}
		s.byName[name] = r
	}
	r.members++
	m := &Member{Recorder: r, state: state}
	s.members[m] = struct{}{}
	return m
}

// Remove takes an election out of the Set, with its series if no other election has its name. In a
// summary its counts stay in the sums.
func (s *Set) Remove(m *Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.members[m]; !ok {
		return
	}
	delete(s.members, m)
	m.members--
	if m.members == 0 && !s.summary {
		delete(s.byName, m.name)
	}
}
