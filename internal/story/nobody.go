package story

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/units"
)

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
	return fmt.Sprintf("the record is vacant: candidates wait %v before they claim", lease)
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
