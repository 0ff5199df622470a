// Package story describes what happens in an election, as an observer sees it.
//
// It combines two sources: events of the election name the leader, and the states of the store show
// when a term was renewed or released, and when its leader was asked to hand over.
package story

import (
	"fmt"
	"slices"
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
	Elected  What = "elected"  // Who leads in Term. If it is repeated, only the Address changed.
	Renewed  What = "renewed"  // Who has renewed Term. It may come before the Elected of that term.
	Asked    What = "asked"    // Who is asked to hand over
	Released What = "released" // Who has released the lease of Term
	Nobody   What = "nobody"   // no member leads; Text says why
	Alarm    What = "alarm"    // an operator should look
	Trouble  What = "trouble"  // the store failed or refused
)

// Fact is one thing that happened.
type Fact struct {
	At   time.Time
	What What
	Who  string // the leader's ID
	Term uint64
	// Text is for people. For Elected it says why the leader changed: Graceful, Forced, Silence, or
	// empty if this is not known.
	Text    string
	Address string
	Lease   time.Duration
	// Took is how long a change of leader took. Least is the shortest possible time for it, or
	// below 0 if that is not known.
	Took, Least time.Duration
}

// Item is a fact and its sources.
type Item struct {
	Fact
	// Event is the event of the election; nil if the fact comes from the store.
	Event *tenure.Event
	// Before is the previous leader, for Elected and Nobody, if there was one.
	Before tenure.Leader
	// Request is the request, for Asked.
	Request *records.Request
}

// Story is what was observed so far. Changes of the store usually come before the events of the
// election for them. Several goroutines may call its methods. The zero Story is ready for use.
type Story struct {
	mu   sync.Mutex
	last records.Record
	// signs has the terms in the order in which the store showed them. The first is the leader's,
	// if the store has shown it.
	signs []*sign
	// leader is the present leader, or the last one.
	leader tenure.Leader
	begun  bool
	// storeFailed: the store has failed, and shown nothing since.
	storeFailed bool
}

// sign is what the store showed of one term.
type sign struct {
	term              uint64
	who, incarnation  string
	nonce             string    // of the last renewal
	first, renewed    time.Time // when the term was first seen, and when its last renewal was seen
	held              time.Time // when the store was last known to have that last renewal
	released, deleted time.Time // zero if the term was not
	lease             time.Duration
	asked             records.Request // the last request that was reported and is there
}

// maxSigns is the number of terms that are remembered before the election reports the first.
const maxSigns = 4

// UsualLease is the default lease.
const UsualLease = 15 * time.Second

// Lease returns the last lease that was seen, or UsualLease if none was.
func (s *Story) Lease() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.Lease > 0 {
		return s.last.Lease
	}
	return UsualLease
}

// See takes a state that the store showed, by a read or a push, and returns what it shows. It does
// not block.
func (s *Story) See(e driver.Entry, pushed bool, now time.Time) []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, g := records.Read(e), s.newest()
	if e.Unverified && !(r.Held() && s.last.Held() && g.of(&r)) {
		return nil // anybody may have sent it: such a push shows only renewals
	}
	if pushed && !s.storeFailed && s.last.Held() && g.of(&s.last) && (r.Term == g.term || r.Seq <= 1) {
		g.held = now // the state did not change until now: no push was missed
	}
	s.last, s.storeFailed = r, false
	switch {
	case r.Absent:
		if g != nil && g.deleted.IsZero() {
			g.deleted = now
		}
	case r.Held():
		return s.held(&r, now)
	case r.Released:
		return s.released(&r, now)
	}
	return nil
}

func (s *Story) held(r *records.Record, now time.Time) []Item {
	var all []Item
	g := s.sign(r, now)
	g.held = now
	if r.Nonce != g.nonce {
		g.nonce, g.renewed, g.lease = r.Nonce, now, r.Lease
		all = append(all, Item{Fact: Fact{At: now, What: Renewed, Who: r.Leader, Term: r.Term, Lease: r.Lease}})
	}
	switch q := r.Wish(); {
	case q == nil:
		g.asked = records.Request{}
	case *q != g.asked:
		g.asked = *q
		all = append(all, Item{Fact: Fact{At: now, What: Asked, Who: r.Leader, Term: r.Term, Text: q.Asked()}, Request: q})
	}
	return all
}

func (s *Story) released(r *records.Record, now time.Time) []Item {
	g := s.sign(r, now)
	if !g.released.IsZero() {
		return nil
	}
	g.released = now
	return []Item{{Fact: Fact{At: now, What: Released, Who: r.Leader, Term: r.Term}}}
}

// sign returns the sign of the record's term. If a term comes again after a deletion or after
// another term, it gets a new sign: the store was recreated.
func (s *Story) sign(r *records.Record, now time.Time) *sign {
	if g := s.newest(); g.of(r) && g.deleted.IsZero() {
		return g
	}
	g := &sign{term: r.Term, who: r.Leader, incarnation: r.Incarnation, first: now}
	s.signs = append(s.signs[max(0, len(s.signs)+1-maxSigns):], g)
	return g
}

// newest returns the sign that the store showed last, or nil.
func (s *Story) newest() *sign {
	if len(s.signs) == 0 {
		return nil
	}
	return s.signs[len(s.signs)-1]
}

func (g *sign) of(r *records.Record) bool {
	return g != nil && g.term == r.Term && g.who == r.Leader && g.incarnation == r.Incarnation
}

// indexOf returns the index of the newest sign of a leader's term, or -1.
func indexOf(signs []*sign, l *tenure.Leader) int {
	for i, g := range slices.Backward(signs) {
		if g.term == l.Term && g.who == l.ID {
			return i
		}
	}
	return -1
}

// Begin returns that no member leads, if no leader was seen yet.
func (s *Story) Begin(now tenure.Status, election, id string) []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || now.Leader.Exists() {
		return nil
	}
	s.begun = true
	return []Item{s.vacant(tenure.Event{Time: time.Now(), Kind: tenure.EventLeader, Election: election, ID: id})}
}

// Hear takes an event of the election, and returns what it shows.
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
		s.storeFailed = true
	}
	return []Item{{Fact: fact, Event: &e}}
}

func (s *Story) leads(e tenure.Event) Item {
	l := e.Leader
	i := Item{Event: &e, Fact: Fact{
		At: e.Time, What: Elected, Who: l.ID, Term: l.Term, Address: l.Address, Lease: s.last.Lease, Least: -1,
	}}
	again := s.leader.Term == l.Term && s.leader.ID == l.ID && s.leader.Incarnation == l.Incarnation
	before, after := s.signs, s.signs
	if at := indexOf(s.signs, &l); at >= 0 {
		before, after = s.signs[:at], s.signs[at:]
		if first := after[0].first; first.Before(e.Time) && !again {
			i.At = first
		}
	}
	if s.leader.Exists() && !again {
		i.Before = s.leader
		i.Took, i.Least, i.Text = s.change(before, i.At)
	}
	s.leader, s.signs = l, after
	return i
}

// Why the leader changed, as far as an observer can see.
const (
	Graceful = "graceful" // the leader had released its lease
	Forced   = "forced"   // the record was deleted
	Silence  = "silence"  // the leader did not renew: it died, was stopped, or was cut off
)

// change returns how long the change took, counted from the last sign of the previous leader, the
// time that it took at least (below 0 if that is not known), and why the leader changed.
func (s *Story) change(signs []*sign, at time.Time) (took, least time.Duration, why string) {
	last := indexOf(signs, &s.leader)
	if last < 0 {
		return 0, -1, ""
	}
	switch g := signs[last]; {
	case !g.released.IsZero():
		return at.Sub(g.released), 0, Graceful
	case !g.deleted.IsZero():
		return at.Sub(g.deleted), -1, Forced
	case !g.silent():
		return 0, -1, ""
	case at.Sub(g.renewed) < g.lease: // the renewal was seen late
		return at.Sub(g.renewed), -1, Silence
	default:
		return at.Sub(g.renewed), g.lease, Silence
	}
}

// silent reports whether the leader did not renew for so long that it was in trouble. A leader that
// was silent for less may have renewed and released the lease between two reads.
func (g *sign) silent() bool {
	return !g.renewed.IsZero() && g.held.Sub(g.renewed) >= g.lease/4*3
}

// vacant returns that no member leads, and why.
func (s *Story) vacant(e tenure.Event) Item {
	return Item{Event: &e, Before: s.leader, Fact: Fact{At: e.Time, What: Nobody, Text: s.why(e.Time)}}
}

func (s *Story) why(now time.Time) string {
	g := s.newest()
	switch {
	case s.storeFailed:
		return "the store does not answer, so this is not certain"
	case s.last.Absent && s.leader.Exists():
		return "the record was deleted"
	case s.last.Absent:
		return "there is no record"
	case s.last.Released:
		return s.last.Leader + " has released the lease"
	case s.last.Vacant():
		return "the record is vacant"
	case s.last.Held() && s.last.Lease > 0 && g.of(&s.last) && now.Sub(g.renewed) >= s.last.Lease:
		return fmt.Sprintf("the lease of %s ran out %s after its last renewal", s.last.Leader, units.Seconds(s.last.Lease))
	}
	return "the stored value is not a valid record"
}
