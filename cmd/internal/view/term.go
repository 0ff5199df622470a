package view

import (
	"fmt"
	"strconv"
	"time"
)

// term is the time of one leader.
type term struct {
	who     string
	token   uint64
	ordinal int // among those that were seen, from 1
	address string
	from    time.Duration
	ended   What          // why it is over; empty while it is not
	until   time.Duration // if it is over
	// gone is when the lease that it left behind ran out or was taken over, if that was seen.
	gone  time.Duration
	taken bool
}

func (t *term) over() bool { return t.ended != "" }

// name is short, as tokens have many digits and gaps between them.
func (t *term) name() string { return "#" + strconv.Itoa(t.ordinal) }

// full has the token beside the name.
func (t *term) full() string { return fmt.Sprintf("term %s (%d)", t.name(), t.token) }

// end keeps the first cause of a term's end; later ones follow from it.
func (t *term) end(why What, at time.Duration) {
	if !t.over() {
		t.ended, t.until = why, max(at, t.from)
	}
	if why == Released || why == Nobody || why == Elected {
		t.free(at)
	}
}

// free: no candidate has to wait for its lease any longer.
func (t *term) free(at time.Duration) {
	if !t.taken {
		t.gone, t.taken = max(at, t.from), true
	}
}

// current is the latest term, nil before the first.
func (m *Model) current() *term {
	if len(m.terms) == 0 {
		return nil
	}
	return &m.terms[len(m.terms)-1]
}

// numbered is the term with a token, nil if it was forgotten.
func (m *Model) numbered(token uint64) *term {
	for i := len(m.terms) - 1; i >= 0; i-- {
		if m.terms[i].token == token {
			return &m.terms[i]
		}
	}
	return nil
}

// deadline is when the lease of a term ends, as far as renewals were seen.
func (m *Model) deadline(t *term) time.Duration {
	if m.renewal.term == t.token {
		return m.renewal.at + m.renewal.lease
	}
	return t.from + m.screen.Lease
}
