// Package story tells what happens in an election, as an observer sees it that takes no part in it.
//
// It folds two sources into one story: the election names the leader, and the record that it sees
// says when it was renewed, released, or its leader asked to hand over.
package story

import (
	"fmt"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/units"
)

// What names the kind of a fact.
type What string

// The kinds of fact.
const (
	Elected  What = "elected"  // Who leads in Term; the same again changes the Address alone
	Renewed  What = "renewed"  // Who has renewed Term, perhaps before its Elected
	Asked    What = "asked"    // Who is asked to hand over
	Released What = "released" // Who has released the lease of Term
	Nobody   What = "nobody"   // nobody leads; Text says why
	Alarm    What = "alarm"    // an operator should look
	Trouble  What = "trouble"  // the store failed or refused
)

// Fact is one thing that happened.
type Fact struct {
	At   time.Time
	What What
	Who  string // the leader's ID
	Term uint64
	// Text is for people. For Elected it is why there was a change of leader: Graceful, Forced,
	// Silence, or empty.
	Text    string
	Address string
	Lease   time.Duration
	// Took is how long a change of leader took, and Least the least that it had to; Least is below
	// 0 if that is not known.
	Took, Least time.Duration
}

// Item is a fact and its sources.
type Item struct {
	Fact
	// Event is the library's, nil if it has none for this.
	Event *tenure.Event
	// Before is the leader before that of an Elected, if there was one.
	Before tenure.Leader
	// Request is that of an Asked.
	Request *records.Request
}

// Story is the state so far. Its sources are the store, whose news come first, and the election.
// Its methods may be called concurrently.
type Story struct {
	mu    sync.Mutex
	last  records.Record
	signs map[uint64]*sign // by term; nil: none
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

// UsualLease is the library's.
const UsualLease = 15 * time.Second

// Lease is the last that was seen.
func (s *Story) Lease() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.Lease > 0 {
		return s.last.Lease
	}
	return UsualLease
}

// See takes a change that the store showed. It does not block.
func (s *Story) See(e driver.Entry, now time.Time) []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := records.Read(e)
	if e.Unverified && !(r.Held() && r.Term == s.last.Term) {
		return nil // anybody may have sent it: of these pushes only renewals are shown
	}
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

func (s *Story) held(r records.Record, fresh bool, now time.Time) []Item {
	var all []Item
	g := s.sign(r.Term, now)
	if fresh {
		g.renewed, g.lease = now, r.Lease
		all = append(all, Item{Fact: Fact{At: now, What: Renewed, Who: r.Leader, Term: r.Term, Lease: r.Lease}})
	}
	if q := r.Wish(); q != nil && !g.asked {
		g.asked = true
		all = append(all, Item{Fact: Fact{At: now, What: Asked, Who: r.Leader, Term: r.Term, Text: records.Asked(q.To, q.By)}, Request: q})
	}
	return all
}

func (s *Story) released(r records.Record, now time.Time) []Item {
	g := s.sign(r.Term, now)
	if !g.released.IsZero() {
		return nil
	}
	g.released = now
	return []Item{{Fact: Fact{At: now, What: Released, Who: r.Leader, Term: r.Term}}}
}

// sign forgets the terms before the one that the election speaks of.
func (s *Story) sign(term uint64, now time.Time) *sign {
	g := s.signs[term]
	if g == nil {
		if s.signs == nil {
			s.signs = map[uint64]*sign{}
		}
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

// Begin says that nobody leads, if no leader was seen yet.
func (s *Story) Begin(now tenure.Status, election, id string) []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || now.Leader.Exists() {
		return nil
	}
	s.begun = true
	return []Item{s.vacant(tenure.Event{Time: time.Now(), Kind: tenure.EventLeader, Election: election, ID: id})}
}

// Hear takes an event of the election.
func (s *Story) Hear(e tenure.Event) []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	fact := Fact{At: e.Time, Term: e.Term}
	if e.Cause != nil {
		fact.Text = e.Cause.Error()
	}
	switch e.Kind {
	case tenure.EventLeader:
		s.begun = true
		if e.Leader.Exists() {
			return []Item{s.leads(e)}
		}
		return []Item{s.vacant(e)}
	case tenure.EventAlarm:
		fact.What = Alarm
	default:
		fact.What = Trouble
		s.deaf = true
	}
	return []Item{{Fact: fact, Event: &e}}
}

func (s *Story) leads(e tenure.Event) Item {
	l := e.Leader
	i := Item{Event: &e, Fact: Fact{
		At: e.Time, What: Elected, Who: l.ID, Term: l.Term, Address: l.Address, Lease: s.last.Lease, Least: -1,
	}}
	if g := s.signs[l.Term]; g != nil && g.first.Before(e.Time) && s.leader.Term != l.Term {
		i.At = g.first
	}
	if s.leader.Exists() && s.leader.Term != l.Term {
		i.Before = s.leader
		i.Took, i.Least, i.Text = s.change(i.At)
	}
	s.leader = l
	return i
}

// Why there was a change of leader, as far as it can be seen from outside.
const (
	Graceful = "graceful" // the leader had released its lease
	Forced   = "forced"   // the record was deleted
	Silence  = "silence"  // the leader did not renew it: it died, was stopped, or was cut off
)

// change is how long it took from the last sign of the leader before, and the least that it had to
// take; below 0 if that is not known.
func (s *Story) change(at time.Time) (took, least time.Duration, why string) {
	g := s.signs[s.leader.Term]
	switch {
	case g == nil:
		return 0, -1, ""
	case !g.released.IsZero():
		return at.Sub(g.released), 0, Graceful
	case !g.deleted.IsZero():
		return at.Sub(g.deleted), -1, Forced
	case !g.renewed.IsZero():
		return at.Sub(g.renewed), g.lease, Silence
	}
	return 0, -1, ""
}

// vacant says that nobody leads, and why.
func (s *Story) vacant(e tenure.Event) Item {
	return Item{Event: &e, Before: s.leader, Fact: Fact{At: e.Time, What: Nobody, Text: s.why(e.Time)}}
}

func (s *Story) why(now time.Time) string {
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
		return fmt.Sprintf("the lease of %s, last seen to be renewed %s ago, has run out", s.last.Leader, units.Seconds(now.Sub(g.renewed)))
	}
	return "what is there is no sound record"
}
