package rules

import (
	"cmp"
	"slices"
	"time"
)

// election joins the traces of its members.
type election struct {
	clocks   time.Duration
	replaced map[string]write // the write that replaced a version
	reigns   []*reign
}

// reign is one term, by wall clocks.
type reign struct {
	member *member
	line   int
	term   uint64
	began  time.Time
	ended  time.Time // by its own account; zero: the trace ends before
	until  time.Time // the deadline of its last confirmed write
	margin time.Duration
}

func (r *reign) extend(w write) {
	r.until = w.wall.Add(w.budget)
	r.margin = max(r.margin, w.record.Lease-w.budget)
}

// end returns when the term was over: when it said so, or at its deadline if that is earlier. A
// process that was stopped says it late.
func (r *reign) end() time.Time {
	if r.ended.IsZero() || r.until.Before(r.ended) {
		return r.until
	}
	return r.ended
}

func (e *election) begin(m *member, l *line, term uint64) *reign {
	r := &reign{member: m, line: l.number, term: term, began: l.Wall}
	e.reigns = append(e.reigns, r)
	return r
}

// applied checks that one write alone replaces a version: the states of a cell form a chain.
func (e *election) applied(m *member, w write) {
	if w.recurs {
		return
	}
	if other, ok := e.replaced[w.prev]; ok && other.record.Nonce != w.record.Nonce {
		m.failf("compare-and-swap", "term %d of %q replaced version %q, and so did term %d of %q: the store ignores versions, or lost its history",
			w.record.Term, w.record.Incarnation, w.prev, other.record.Term, other.record.Incarnation)
	}
	e.replaced[w.prev] = w
}

// judge checks that terms have one holder each, and do not overlap.
func (e *election) judge() error {
	slices.SortFunc(e.reigns, func(a, b *reign) int { return cmp.Compare(a.term, b.term) })
	for i := 1; i < len(e.reigns); i++ {
		was, r := e.reigns[i-1], e.reigns[i]
		r.member.last = &line{number: r.line}
		switch over := was.end().Sub(r.began); {
		case r.term == was.term:
			r.member.failf("L10", "term %d is also that of %s:%d", r.term, was.member.file, was.line)
		case over > was.margin+e.clocks:
			r.member.failf("P1", "term %d begins %v before the end of term %d, of %s:%d", r.term, over, was.term, was.member.file, was.line)
		}
		if r.member.fault != nil {
			return r.member.fault
		}
	}
	return nil
}
