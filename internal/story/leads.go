package story

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/units"
)

// leads takes a leader that the election reports. It is only named if its record was found, until a
// renewal is seen.
func (s *Story) leads(e tenure.Event) Item {
	l := e.Leader
	i := Item{Event: &e, Fact: Fact{
		At: e.Time, What: Elected, Who: l.ID, Term: l.Term, Address: l.Address, Lease: s.last.Lease, Least: -1,
	}}
	again := s.leader.Term == l.Term && s.leader.ID == l.ID && s.leader.Incarnation == l.Incarnation
	before, after := s.signs, s.signs
	var g *sign
	if at := indexOf(s.signs, &l); at >= 0 {
		before, after, g = s.signs[:at], s.signs[at:], s.signs[at]
		if g.first.Before(e.Time) && !again {
			i.At = g.first
		}
	}
	i.AtLeast = g == nil || g.found
	if s.leader.Exists() && !again {
		i.Before = s.leader
		if !i.AtLeast {
			s.change(before, &i)
		}
	}
	s.leader, s.signs, s.event, s.pending, s.invalid = l, after, &e, nil, false
	switch {
	case g != nil && !g.confirmed:
		return s.named(i, g, e.Time)
	case g != nil && g.found:
		i.Confirmed = g.renewed
	}
	return i
}

// named returns that the record names a leader, and keeps the Elected for its confirmation.
func (s *Story) named(elected Item, g *sign, now time.Time) Item {
	s.pending = &elected
	i := elected
	i.What, i.Lease, i.Written, i.AtLeast, i.Text = Named, g.lease, g.written, false, NotConfirmed(g.written, now)
	return i
}

// NotConfirmed describes a record whose leader was not seen to renew, and that was written at that
// time by its writer's clock; zero if that is not known.
func NotConfirmed(written, now time.Time) string {
	switch age := now.Sub(written); {
	case written.IsZero():
		return "not confirmed: no renewal was seen"
	case age < -time.Second:
		return "not confirmed: no renewal was seen, and its writer's clock is " + units.Age(-age) + " ahead"
	default:
		return "not confirmed: last written " + units.Age(age) + " ago, by its writer's clock"
	}
}

// confirm returns the Elected of the present leader if it was only named so far and is seen to
// renew. If its term was found again, it returns that the leader is only named.
func (s *Story) confirm(g *sign, how sight) []Item {
	if s.event == nil || !g.leads(&s.event.Leader) {
		return nil
	}
	if how.found && how.verified {
		l := s.event.Leader
		return []Item{s.named(Item{Event: s.event, Fact: Fact{
			At: how.at, What: Elected, Who: l.ID, Term: l.Term, Address: l.Address, AtLeast: g.found, Least: -1,
		}}, g, how.at)}
	}
	if s.pending == nil || !g.confirmed {
		return nil
	}
	i := *s.pending
	i.Confirmed, i.Lease, s.pending = how.at, g.lease, nil
	return []Item{i}
}

// Why the leader changed, as far as an observer can see.
const (
	Graceful = "graceful" // the leader had released its lease
	Forced   = "forced"   // the record was deleted
	Silence  = "silence"  // the leader did not renew: it died, was stopped, or was cut off
)

// change adds why the leader changed and how long that took, counted from the last sign of the
// previous leader.
func (s *Story) change(signs []*sign, i *Item) {
	last := indexOf(signs, &s.leader)
	if last < 0 {
		return
	}
	switch g := signs[last]; {
	case !g.released.IsZero():
		i.Text, i.Took, i.Least, i.TookAtLeast = Graceful, i.At.Sub(g.released), 0, g.endFound
		i.Downtime = i.Took
	case !g.deleted.IsZero():
		i.Text, i.Took, i.TookAtLeast = Forced, i.At.Sub(g.deleted), g.endFound
	case g.silent():
		s.afterSilence(g, i)
	}
}

func (s *Story) afterSilence(g *sign, i *Item) {
	i.Text, i.Took, i.TookAtLeast, i.LeaseEnded = Silence, i.At.Sub(g.renewed), !g.confirmed, g.leaseEnd()
	if i.Took >= g.lease { // else the renewal was seen late
		i.Least = g.lease
	}
	if !g.written.IsZero() && i.TookAtLeast {
		i.TookByClock = max(0, i.At.Sub(g.written))
	}
	i.Downtime = max(0, i.Took-g.lease)
}

// nobody returns that no member leads, and why.
func (s *Story) nobody(e tenure.Event) Item {
	i := Item{Event: &e, Before: s.leader, Fact: Fact{At: e.Time, What: Nobody, Text: s.why(e.Time)}}
	if at := indexOf(s.signs, &s.leader); at >= 0 {
		g := s.signs[at]
		if !g.confirmed {
			i.Written = g.written
		}
		if end := g.leaseEnd(); !s.storeFailed && !end.After(e.Time) {
			i.LeaseEnded = end
		}
	}
	if s.last.Vacant() && !s.storeFailed {
		i.Expected = s.vacantSince.Add(s.last.Lease)
	}
	s.event, s.pending = nil, nil
	return i
}

// Vacant says that the record is vacant, with that lease.
func Vacant(lease time.Duration) string {
	return fmt.Sprintf("the record is vacant: candidates wait at least %v before they claim", lease)
}

// why says why no member leads. The election reports that later than the store shows a change, so
// the store may show the next leader already.
func (s *Story) why(now time.Time) string {
	r := &s.last
	switch g := s.newest(); {
	case s.storeFailed:
		return "the store does not answer, so this is not certain"
	case s.succeeded():
		return s.signs[0].end(now)
	case r.Absent && s.leader.Exists():
		return "the record was deleted"
	case r.Absent:
		return "there is no record"
	case r.Released:
		return r.Leader + " has released the lease"
	case r.Vacant():
		return Vacant(r.Lease)
	case r.Held() && r.Lease > 0 && g.of(r) && !s.invalid:
		return g.end(now)
	}
	return "the stored value is not a valid record"
}

// succeeded reports whether the store has shown the next leader after the present or last one. That
// one did not end because of the state that the store shows now.
func (s *Story) succeeded() bool {
	g := s.newest()
	return len(s.signs) > 1 && s.signs[0].leads(&s.leader) && s.last.Held() && s.last.Lease > 0 && g.of(&s.last) && !s.invalid
}

// end says how the term ended.
func (g *sign) end(now time.Time) string {
	switch {
	case !g.released.IsZero():
		return g.who + " has released the lease"
	case !g.deleted.IsZero():
		return "the record was deleted"
	case g.confirmed:
		return fmt.Sprintf("the lease of %s ran out %s after its last renewal", g.who, units.Seconds(g.lease))
	}
	text := "the record names " + g.who
	if age := now.Sub(g.written); !g.written.IsZero() && age >= 0 {
		text += ", last written " + units.Age(age) + " ago by its clock"
	}
	return fmt.Sprintf("%s, and no renewal was seen for its lease of %v", text, g.lease)
}
