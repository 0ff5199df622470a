package demo

import (
	"fmt"
	"slices"
	"sort"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

// checker finds leaders at the same time. It is told every act, of any process and in any order, and holds that
//
//   - a token belongs to one process alone, and
//   - every act of an older token comes before every act of a newer one, so that tokens grow.
//
// For the second, the first and the last act of each token are enough, and exact.
type checker struct {
	spans []span // by token
	acts  int
	found []overlap
}

// span is what one token was used for.
type span struct {
	token       uint64
	by          actor
	first, last stamp.Time
}

// actor is a process of a candidate.
type actor struct {
	id  string
	pid int
}

func (a actor) String() string { return fmt.Sprintf("%s (process %d)", a.id, a.pid) }

// overlap is one violation: two processes of which one acted too late.
type overlap struct{ older, newer span }

// String says what was seen.
func (o overlap) String() string {
	if o.older.token == o.newer.token {
		return fmt.Sprintf("%v and %v both act in term %d", o.older.by, o.newer.by, o.older.token)
	}
	return fmt.Sprintf("%v acts in term %d %v after %v first acted in term %d",
		o.older.by, o.older.token, o.older.last.Sub(o.newer.first), o.newer.by, o.newer.token)
}

// act takes one act and returns the overlaps that it shows, each pair of terms once.
func (c *checker) act(token uint64, by actor, at stamp.Time) []overlap {
	c.acts++
	before := len(c.found)
	i := sort.Search(len(c.spans), func(i int) bool { return c.spans[i].token >= token })
	if i == len(c.spans) || c.spans[i].token != token {
		c.spans = slices.Insert(c.spans, i, span{token: token, by: by, first: at, last: at})
	}
	s := &c.spans[i]
	if s.by != by {
		c.note(*s, span{token: token, by: by, first: at, last: at})
	}
	s.first, s.last = min(s.first, at), max(s.last, at)
	c.compare(i, at)
	return c.found[before:]
}

// compare looks from one act, which is all that has changed: earlier terms must be over, later ones not begun.
func (c *checker) compare(i int, at stamp.Time) {
	for _, older := range c.spans[:i] {
		if older.last >= at {
			c.note(older, c.spans[i])
		}
	}
	for _, newer := range c.spans[i+1:] {
		if at >= newer.first {
			c.note(c.spans[i], newer)
		}
	}
}

func (c *checker) note(older, newer span) {
	known := slices.ContainsFunc(c.found, func(o overlap) bool {
		return o.older.token == older.token && o.newer.token == newer.token
	})
	if !known {
		c.found = append(c.found, overlap{older, newer})
	}
}

// lastAct is when a token was last used; false if it never was.
func (c *checker) lastAct(token uint64) (stamp.Time, bool) {
	i := sort.Search(len(c.spans), func(i int) bool { return c.spans[i].token >= token })
	if i == len(c.spans) || c.spans[i].token != token {
		return 0, false
	}
	return c.spans[i].last, true
}
