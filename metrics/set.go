// Package metrics collects metrics of elections, for any monitoring system. Use it to alert when an
// election has no leader, renews late or needs an operator. Set [tenure.Config.Metrics] to a [Set],
// and give the Set to an adapter: package metrics/tenureprom for Prometheus, or package
// metrics/tenureotel for OpenTelemetry. [Set.WriteText] needs no library, and `tenure run
// --metrics` needs no code.
//
// Each metric has samples as soon as an election is created, with 0 if nothing has happened, so an
// alerting rule always finds one. Terms are values and never labels. docs/observe.md explains each
// metric, what normal looks like, and what to do about each alert.
//
// The package depends on the standard library alone.
//
// [tenure.Config.Metrics]: https://pkg.go.dev/github.com/tenure-go/tenure#Config
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
	jobs    map[*Job]struct{}
	agent   func() AgentState        // nil: there is none
	byJob   map[[2]string]*jobSeries // by election and job
	dropped atomic.Uint64
	calls   [len(operations)][len(outcomes)]atomic.Uint64
	took    [len(operations)]histogram
}

// New returns a Set with series for each election, 18 for one, and for each scheduled job, 16 for
// one. It suits up to about a thousand of both.
func New() *Set {
	return &Set{
		since: time.Now(), members: map[*Member]struct{}{}, byName: map[string]*Recorder{},
		jobs: map[*Job]struct{}{}, byJob: map[[2]string]*jobSeries{},
	}
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

// Recorder counts the events of one election, or in a summary those of all elections of its Set.
// Dropped and Called always count for the whole Set. Package tenure calls it; another
// implementation of elections can use it too. Its methods may be called concurrently. They take no
// lock and allocate nothing.
type Recorder struct {
	set        *Set
	name       string
	since      time.Time // when it began to count
	members    int       // how many share it; under the lock of the Set
	ended      [len(ends)]atomic.Uint64
	renewed    [len(lefts)]atomic.Uint64
	alarms     [len(alarmKinds)]atomic.Uint64
	leaderless atomic.Int64 // a time.Duration
}

// Ended counts the end of a term.
func (r *Recorder) Ended(why End) { r.ended[why].Add(1) }

// Renewed counts a confirmed renewal. Left is the time that was left until the former deadline, as
// a part of Lease less Margin, from 0 to 1.
func (r *Recorder) Renewed(left float64) { r.renewed[band(left)].Add(1) }

// Alarmed counts an alarm.
func (r *Recorder) Alarmed(kind Alarm) { r.alarms[kind].Add(1) }

// Leaderless adds a time in which this process saw no leader.
func (r *Recorder) Leaderless(d time.Duration) { r.leaderless.Add(int64(d)) }

// Dropped counts, for the Set, an event that was dropped.
func (r *Recorder) Dropped() { r.set.dropped.Add(1) }

// Called counts, for the Set, a call of the store, and records how long it took. It does not record
// the duration of a call without an answer.
func (r *Recorder) Called(op Operation, out Outcome, took time.Duration) {
	r.set.calls[op][out].Add(1)
	if out != Timeout && out != PoolBusy && out != Connecting {
		r.set.took[op].observe(took)
	}
}

// histogram counts durations in the buckets of callDuration.
type histogram struct {
	buckets [14]atomic.Uint64 // the last is beyond all bounds
	sum     atomic.Int64      // a time.Duration
}

var _ = [1]int{}[len(histogram{}.buckets)-14]

func (h *histogram) observe(took time.Duration) {
	i, seconds := 0, took.Seconds()
	for i < len(callDuration.Bounds) && seconds > callDuration.Bounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(took))
}

// distribution returns a copy.
func (h *histogram) distribution() *Distribution {
	d := &Distribution{Counts: make([]uint64, len(h.buckets))}
	d.Sum = time.Duration(h.sum.Load()).Seconds()
	for i := range h.buckets {
		d.Counts[i] = h.buckets[i].Load()
	}
	return d
}
