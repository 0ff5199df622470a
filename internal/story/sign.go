package story

import (
	"slices"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/records"
)

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
