package watch

import (
	"fmt"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/internal/records"
	"github.com/tenure-go/tenure/cmd/internal/view"
	"github.com/tenure-go/tenure/driver"
)

// story is the state so far. Its sources are the store, whose news come first, and the election.
type story struct {
	mu    sync.Mutex
	last  records.Record
	signs map[uint64]*sign // by term
	// leader is the last that there was.
	leader tenure.Leader
	begun  bool
	// deaf: nothing was seen since the store failed last.
	deaf bool
}

// sign is what the store showed of one term.
type sign struct {
	first, renewed    time.Time // when it was seen first, and when its last renewal was
	released, deleted time.Time // zero if it was not
	lease             time.Duration
	asked             bool
}

// usualLease is the library's.
const usualLease = 15 * time.Second

// lease is the last that was seen.
func (s *story) lease() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.Lease > 0 {
		return s.last.Lease
	}
	return usualLease
}

// see takes a change that the store showed. It does not block.
func (s *story) see(e driver.Entry, now time.Time) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := records.Read(e)
	was := s.last
	s.last, s.deaf = r, false
	switch {
	case r.Absent:
		if g := s.signs[s.leader.Term]; g != nil && g.deleted.IsZero() {
			g.deleted = now
		}
	case r.Held():
		return s.held(r, r.Nonce != was.Nonce, now)
	case r.Released:
		return s.released(r, now)
	}
	return nil
}

func (s *story) held(r records.Record, fresh bool, now time.Time) []item {
	var all []item
	g := s.sign(r.Term, now)
	if fresh {
		g.renewed, g.lease = now, r.Lease
		all = append(all, item{fact: view.Fact{At: now, What: view.Renewed, Who: r.Leader, Term: r.Term, Lease: r.Lease}})
	}
	if q := r.Wish(); q != nil && !g.asked {
		g.asked = true
		all = append(all, item{fact: view.Fact{At: now, What: view.Asked, Who: r.Leader, Term: r.Term, Text: records.Asked(q.To, q.By)}, request: q})
	}
	return all
}

func (s *story) released(r records.Record, now time.Time) []item {
	g := s.sign(r.Term, now)
	if !g.released.IsZero() {
		return nil
	}
	g.released = now
	return []item{{fact: view.Fact{At: now, What: view.Released, Who: r.Leader, Term: r.Term}}}
}

// sign forgets the terms before the one that the election speaks of.
func (s *story) sign(term uint64, now time.Time) *sign {
	g := s.signs[term]
	if g == nil {
		g = &sign{first: now}
		s.signs[term] = g
		for t := range s.signs {
			if t < s.leader.Term && t != term {
				delete(s.signs, t)
			}
		}
	}
	return g
}

// begin says that nobody leads, if no leader was seen yet.
func (s *story) begin(now tenure.Status, election, id string) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || now.Leader.Exists() {
		return nil
	}
	s.begun = true
	return []item{s.vacant(tenure.Event{Time: time.Now(), Kind: tenure.EventLeader, Election: election, ID: id})}
}

// hear takes an event of the election.
func (s *story) hear(e tenure.Event) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	fact := view.Fact{At: e.Time, Term: e.Term}
	if e.Cause != nil {
		fact.Text = e.Cause.Error()
	}
	switch e.Kind {
	case tenure.EventLeader:
		s.begun = true
		if e.Leader.Exists() {
			return []item{s.leads(e)}
		}
		return []item{s.vacant(e)}
	case tenure.EventAlarm:
		fact.What = view.Alarm
	default:
		fact.What = view.Trouble
		s.deaf = true
	}
	return []item{{fact: fact, event: &e}}
}

func (s *story) leads(e tenure.Event) item {
	l := e.Leader
	i := item{event: &e, fact: view.Fact{
		At: e.Time, What: view.Elected, Who: l.ID, Term: l.Term, Address: l.Address, Lease: s.last.Lease, Least: -1,
	}}
	if g := s.signs[l.Term]; g != nil && g.first.Before(e.Time) && s.leader.Term != l.Term {
		i.fact.At = g.first
	}
	if s.leader.Exists() && s.leader.Term != l.Term {
		i.before = s.leader
		i.fact.Took, i.fact.Least, i.fact.Text = s.change(i.fact.At)
	}
	s.leader = l
	return i
}

// Why there was a change of leader, as far as it can be seen from outside.
const (
	graceful = "graceful" // the leader had released its lease
	forced   = "forced"   // the record was deleted
	silence  = "silence"  // the leader did not renew it: it died, was stopped, or was cut off
)

// change is how long it took from the last sign of the leader before, and the least that it had to
// take; below 0 if that is not known.
func (s *story) change(at time.Time) (took, least time.Duration, why string) {
	g := s.signs[s.leader.Term]
	switch {
	case g == nil:
		return 0, -1, ""
	case !g.released.IsZero():
		return at.Sub(g.released), 0, graceful
	case !g.deleted.IsZero():
		return at.Sub(g.deleted), -1, forced
	case !g.renewed.IsZero():
		return at.Sub(g.renewed), g.lease, silence
	}
	return 0, -1, ""
}

// vacant says that nobody leads, and why.
func (s *story) vacant(e tenure.Event) item {
	return item{event: &e, before: s.leader, fact: view.Fact{At: e.Time, What: view.Nobody, Text: s.why(e.Time)}}
}

func (s *story) why(now time.Time) string {
	g := s.signs[s.last.Term]
	switch {
	case s.deaf:
		return "the store does not answer, so that is not sure"
	case s.last.Absent && s.leader.Exists():
		return "the record was deleted"
	case s.last.Absent:
		return "there is no record"
	case s.last.Released:
		return s.last.Leader + " has released the lease"
	case s.last.Vacant():
		return "the record is vacant"
	case s.last.Held() && s.last.Lease > 0 && g != nil && now.Sub(g.renewed) >= s.last.Lease:
		return fmt.Sprintf("the lease of %s, last seen to be renewed %s ago, has run out", s.last.Leader, output.Seconds(now.Sub(g.renewed)))
	}
	return "what is there is no sound record"
}
