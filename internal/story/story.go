// Package story tells what happens in an election, as an observer sees it that takes no part in it.
//
// It folds two sources into one story: the election names the leader, and the record that it sees
// says when it was renewed, released, or its leader asked to hand over.
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
	mu   sync.Mutex
	last records.Record
	// signs are in the order in which the store showed them. The first is the leader's, if any is.
	signs []*sign
	// leader is the last that there was.
	leader tenure.Leader
	begun  bool
	// deaf: nothing was seen since the store failed last.
	deaf bool
}

// sign is what the store showed of one term.
type sign struct {
	term              uint64
	who, incarnation  string
	nonce             string    // of the last renewal
	first, renewed    time.Time // when it was seen first, and when its last renewal was
	held              time.Time // when it was last known to be in the store as it was renewed last
	released, deleted time.Time // zero if it was not
	lease             time.Duration
	asked             bool
}

// maxSigns is how many terms the store may show before the election speaks of the first.
const maxSigns = 4

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

// See takes a change that the store showed, perhaps by a push. It does not block.
func (s *Story) See(e driver.Entry, pushed bool, now time.Time) []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, g := records.Read(e), s.newest()
	if e.Unverified && !(r.Held() && s.last.Held() && g.of(&r)) {
		return nil // anybody may have sent it: of these pushes only renewals are shown
	}
	if pushed && !s.deaf && s.last.Held() && g.of(&s.last) && (r.Term == g.term || r.Seq <= 1) {
		g.held = now // no push came until now, and none was missed
	}
	s.last, s.deaf = r, false
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
	if q := r.Wish(); q != nil && !g.asked {
		g.asked = true
		all = append(all, Item{Fact: Fact{At: now, What: Asked, Who: r.Leader, Term: r.Term, Text: records.Asked(q.To, q.By)}, Request: q})
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

// sign returns that of the record's term. A term that comes again, after a deletion or after
// another one, is another: the store was deleted and made again.
func (s *Story) sign(r *records.Record, now time.Time) *sign {
	if g := s.newest(); g.of(r) && g.deleted.IsZero() {
		return g
	}
	g := &sign{term: r.Term, who: r.Leader, incarnation: r.Incarnation, first: now}
	s.signs = append(s.signs[max(0, len(s.signs)+1-maxSigns):], g)
	return g
}

// newest is nil if there is none.
func (s *Story) newest() *sign {
	if len(s.signs) == 0 {
		return nil
	}
	return s.signs[len(s.signs)-1]
}

func (g *sign) of(r *records.Record) bool {
	return g != nil && g.term == r.Term && g.who == r.Leader && g.incarnation == r.Incarnation
}

// place returns where the newest sign of a leader's term is; below 0 if there is none.
func place(signs []*sign, l *tenure.Leader) int {
	for i, g := range slices.Backward(signs) {
		if g.term == l.Term && g.who == l.ID {
			return i
		}
	}
	return -1
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
	again := s.leader.Term == l.Term && s.leader.ID == l.ID && s.leader.Incarnation == l.Incarnation
	before, after := s.signs, s.signs
	if at := place(s.signs, &l); at >= 0 {
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

// Why there was a change of leader, as far as it can be seen from outside.
const (
	Graceful = "graceful" // the leader had released its lease
	Forced   = "forced"   // the record was deleted
	Silence  = "silence"  // the leader did not renew it: it died, was stopped, or was cut off
)

// change is how long it took from the last sign of the leader before, and the least that it had to
// take; below 0 if that is not known.
func (s *Story) change(signs []*sign, at time.Time) (took, least time.Duration, why string) {
	last := place(signs, &s.leader)
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

// silent reports whether the leader did not renew for so long that it was not well. Without that it
// may have renewed and released the lease between two looks at the store.
func (g *sign) silent() bool {
	return !g.renewed.IsZero() && g.held.Sub(g.renewed) >= g.lease/4*3
}

// vacant says that nobody leads, and why.
func (s *Story) vacant(e tenure.Event) Item {
	return Item{Event: &e, Before: s.leader, Fact: Fact{At: e.Time, What: Nobody, Text: s.why(e.Time)}}
}

func (s *Story) why(now time.Time) string {
	g := s.newest()
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
	case s.last.Held() && s.last.Lease > 0 && g.of(&s.last) && now.Sub(g.renewed) >= s.last.Lease:
		return fmt.Sprintf("the lease of %s, last seen to be renewed %s ago, has run out", s.last.Leader, units.Seconds(now.Sub(g.renewed)))
	}
	return "what is there is no sound record"
}
