// Package story describes what happens in an election, as an observer sees it.
//
// It combines two sources: events of the election name the leader, and the states of the store show
// when a term was renewed or released, and when its leader was asked to hand over.
//
// It states only what was seen. A record that was found, such as the first one that an observer
// reads, does not show whether its leader is still there, nor since when it leads.
package story

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/records"
)

// What names the kind of a fact.
type What string

// The kinds of fact.
const (
	Elected What = "elected" // Who leads in Term. If it is repeated, only the Address changed.
	// Named: a record that was found names Who as the leader of Term, and no renewal of it was
	// seen. It is followed by Elected when one is seen, or by Nobody. It comes again if that term
	// is found again after a time in which changes may have been missed, or if its Address changed.
	Named    What = "named"
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
	// Written is when the record was written by the clock of its writer, for Named, and for a
	// Nobody that follows it; zero if that is not known.
	Written time.Time
	// AtLeast: the term of an Elected began before At, when it was found.
	AtLeast bool
	// Took is how long a change of leader took. Least is the shortest possible time for it, or
	// below 0 if that is not known.
	Took, Least time.Duration
	// TookAtLeast: Took counts from when the end of the last term, or its last record, was found,
	// and not from a release or a renewal that was seen as it happened. So the change took Took or
	// longer.
	TookAtLeast bool
	// TookByClock is the time from the last renewal to At by the clock of the last leader, which
	// may be wrong; 0 unless TookAtLeast is set after a Silence.
	TookByClock time.Duration
	// Downtime is how long no member could act before an Elected: after a Silence since the end of
	// the last lease that was seen, and after a release since that; 0 if that is not known.
	Downtime time.Duration
	// Expected is, for Nobody, until when it is normal that no member leads: a candidate waits for
	// a lease after it has put the first record, as at each first start. It is zero otherwise.
	Expected time.Time
}

// Item is a fact and its sources.
type Item struct {
	Fact
	// Event is the event of the election; nil if the fact comes from the store alone.
	Event *tenure.Event
	// Before is the previous leader, for Elected, Named and Nobody, if there was one.
	Before tenure.Leader
	// LeaseEnded is when the lease of Before ran out, by its last renewal that was seen, for
	// Elected and Nobody. It is zero if that is not known, or if the lease was released.
	LeaseEnded time.Time
	// Confirmed is when a renewal was seen that turned a Named into this Elected; zero if there was
	// no Named.
	Confirmed time.Time
	// Request is the request, for Asked.
	Request *records.Request
}

// Seen returns when an Elected was seen: a leader that was only named leads since before it
// renewed.
func (i *Item) Seen() time.Time {
	if i.Confirmed.After(i.At) {
		return i.Confirmed
	}
	return i.At
}

// After says how the term before an Elected ended, if that is known. Silent describes a leader that
// did not renew.
func (i *Item) After(silent string) string {
	switch i.Text {
	case Graceful:
		return "after " + i.Before.ID + " released the lease"
	case Forced:
		return "after the record of " + i.Before.ID + " was deleted"
	case Silence:
		return "after " + i.Before.ID + " " + silent
	}
	return ""
}

// Story is what was observed so far. Changes of the store usually come before the events of the
// election for them. Several goroutines may call its methods. The zero Story is ready for use.
type Story struct {
	mu   sync.Mutex
	last records.Record
	seen time.Time // when the store last showed a state
	// vacantSince is when the last vacant record was first seen.
	vacantSince time.Time
	// signs has the terms in the order in which the store showed them. The first is the leader's,
	// if the store has shown it.
	signs []*sign
	// leader is the present leader, or the last one.
	leader tenure.Leader
	// event is the last event of the present leader; nil if there is no leader.
	event *tenure.Event
	// pending is the Elected of a leader that is only named so far; nil if there is none.
	pending *Item
	begun   bool
	// storeFailed: the store has failed, and shown nothing since.
	storeFailed bool
	// invalid: the election has reported that the stored value is no valid record.
	invalid bool
}

// UsualLease is the default lease.
const UsualLease = record.DefaultLease

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
	if r.Vacant() && r.Nonce != s.last.Nonce {
		s.vacantSince = now
	}
	how := sight{now, s.afterGap(r.Lease, pushed, now), !e.Unverified}
	s.last, s.seen, s.storeFailed = r, now, false
	switch {
	case r.Absent:
		if g != nil && g.deleted.IsZero() {
			g.deleted, g.endFound = now, how.found
		}
	case r.Held():
		return s.held(&r, how)
	case r.Released:
		return s.released(&r, how)
	}
	return nil
}

// unseenPush is how long a store that pushes may show nothing without having failed. Then the
// election reads.
const unseenPush = 10 * time.Second

// afterGap reports whether changes may have been missed before this state, such as the end of the
// lease of a leader that wrote it. Reads that follow each other are less than a lease and a half
// apart, unless they are rarer than that on purpose. The wall clock also counts the time in which
// the machine was suspended.
func (s *Story) afterGap(lease time.Duration, pushed bool, now time.Time) bool {
	if lease <= 0 {
		lease = UsualLease
	}
	most := lease + lease/2
	if pushed && !s.storeFailed {
		most = max(most, unseenPush)
	}
	return s.seen.IsZero() || now.Round(0).Sub(s.seen.Round(0)) > most
}

func (s *Story) held(r *records.Record, how sight) []Item {
	var all []Item
	g := s.sign(r, how)
	g.held = how.at
	switch {
	case r.Nonce != g.nonce || g.renewed.IsZero():
		if g.write(r, how); !how.found {
			all = append(all, Item{Fact: Fact{At: how.at, What: Renewed, Who: r.Leader, Term: r.Term, Lease: r.Lease}})
		}
		all = append(all, s.confirm(g, how)...)
	case how.verified && r.Nonce == g.rumor: // a push that anybody may have sent was true
		g.rumor, g.confirmed = "", true
		all = s.confirm(g, how)
	}
	switch q := r.Wish(); {
	case q == nil:
		g.asked = records.Request{}
	case *q != g.asked:
		g.asked = *q
		all = append(all, Item{Fact: Fact{At: how.at, What: Asked, Who: r.Leader, Term: r.Term, Text: q.Asked()}, Request: q})
	}
	return all
}

func (s *Story) released(r *records.Record, how sight) []Item {
	g := s.sign(r, how)
	if !g.released.IsZero() {
		return nil
	}
	g.released, g.endFound = how.at, how.found
	return []Item{{Fact: Fact{At: how.at, What: Released, Who: r.Leader, Term: r.Term}}}
}

// Begin returns that no member leads, if no leader was seen yet.
func (s *Story) Begin(now tenure.Status, election, id string) []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || now.Leader.Exists() {
		return nil
	}
	s.begun = true
	return []Item{s.nobody(tenure.Event{Time: time.Now(), Kind: tenure.EventLeader, Election: election, ID: id})}
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
		return []Item{s.nobody(e)}
	case tenure.EventAlarm:
		fact.What = Alarm
		s.invalid = s.invalid || isInvalid(e.Cause)
	default:
		fact.What = Trouble
		// the event may come after a later answer
		s.storeFailed = s.storeFailed || !e.Time.Before(s.seen)
	}
	return []Item{{Fact: fact, Event: &e}}
}

// sign is what the store showed of one term.
type sign struct {
	term              uint64
	who, incarnation  string
	nonce             string    // of the last renewal
	rumor             string    // the same, if only a push showed it that anybody may have sent
	first, renewed    time.Time // when the term was first seen, and when its last renewal was seen
	written           time.Time // that renewal, by its writer's clock
	held              time.Time // when the store was last known to have that last renewal
	released, deleted time.Time // zero if the term was not
	lease             time.Duration
	asked             records.Request // the last request that was reported and is there
	found             bool            // changes may have been missed before its first record
	confirmed         bool            // its last renewal, or its first record, was seen as it came
	endFound          bool            // changes may have been missed before its release or deletion
}

// sight is how a state was seen.
type sight struct {
	at       time.Time
	found    bool // changes may have been missed before
	verified bool // a writer of the store wrote it
}

// maxSigns is the number of terms that are remembered before the election reports the first.
const maxSigns = 4

// sign returns the sign of the record's term. If a term comes again after a deletion or after
// another term, it gets a new sign: the store was recreated.
func (s *Story) sign(r *records.Record, how sight) *sign {
	if g := s.newest(); g.of(r) && g.deleted.IsZero() {
		return g
	}
	g := &sign{term: r.Term, who: r.Leader, incarnation: r.Incarnation, first: how.at, found: how.found}
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

// leads reports whether the sign is of a leader's term.
func (g *sign) leads(l *tenure.Leader) bool { return g.term == l.Term && g.who == l.ID }

// indexOf returns the index of the newest sign of a leader's term, or -1.
func indexOf(signs []*sign, l *tenure.Leader) int {
	for i, g := range slices.Backward(signs) {
		if g.leads(l) {
			return i
		}
	}
	return -1
}

// write takes another write of the term's leader.
func (g *sign) write(r *records.Record, how sight) {
	g.nonce, g.renewed, g.lease, g.written, g.rumor = r.Nonce, how.at, r.Lease, r.Updated, ""
	if !how.verified {
		g.rumor = r.Nonce
		return
	}
	g.confirmed = !how.found
}

// leaseEnd returns when the lease ran out by the last renewal that was seen as it came.
func (g *sign) leaseEnd() time.Time {
	if !g.confirmed || !g.released.IsZero() || !g.deleted.IsZero() {
		return time.Time{}
	}
	return g.renewed.Add(g.lease)
}

// silent reports whether the leader did not renew for so long that it was in trouble. A leader that
// was silent for less may have renewed and released the lease between two reads.
func (g *sign) silent() bool {
	return !g.renewed.IsZero() && g.held.Sub(g.renewed) >= g.lease/4*3
}

// The least delay beyond the shortest possible time that is worth a look.
const tardyAfter = time.Second

// Late returns the time by which reads may delay a change of leader and its sight: 0 where the
// store pushes, and elsewhere the lease, for the reads of candidates, plus the time between two
// reads of the observer.
func Late(pushed bool, lease, interval time.Duration) time.Duration {
	if pushed {
		return 0
	}
	return lease + interval
}

// Tardy reports whether a change of leader took longer than it should. Least is the shortest
// possible time, below 0 if that is not known: then Tardy returns false. Late is that of Late.
//
// A candidate that is pushed needs milliseconds. One second more than the shortest time leaves room
// for a store call that fails once, or a busy machine. After a silence it is a quarter of the lease
// if that is longer: the clocks of candidates may differ, and a call may take as long as a lease
// allows. So a hand-over of milliseconds is never tardy.
func Tardy(took, least, late time.Duration) bool {
	return least >= 0 && took > least+max(tardyAfter, least/4)+late
}

// isInvalid reports whether the key holds something else than a record that elections accept.
func isInvalid(cause error) bool {
	damage, ok := errors.AsType[*tenure.StoreError](cause)
	return ok && (damage.Kind == driver.Foreign || damage.Kind == driver.Malformed)
}
