package view

import (
	"fmt"
	"strconv"
	"time"
)

// term is the term of one leader.
type term struct {
	who     string
	token   uint64
	ordinal int // among those that were seen, from 1
	address string
	from    time.Duration
	ended   What          // the fact that ended it; empty while it lasts
	until   time.Duration // its end, if it has ended
	renewed time.Duration // its last renewal that was seen; from, before the first
	// named: the record names the leader, and no renewal was seen. written is when the record was
	// written, by its writer's clock.
	named   bool
	written time.Time
	// silent: the term ended with its lease. It is not known whether the leader acted after its
	// last renewal, which is until.
	silent  bool
	atLeast bool // it began before from
	// gone is when the lease that it left behind ran out or was taken over, if that was seen.
	gone  time.Duration
	taken bool
}

func (t *term) over() bool { return t.ended != "" }

// name returns the ordinal, which is shorter than the token.
func (t *term) name() string { return "#" + strconv.Itoa(t.ordinal) }

// of reports whether a fact is about this term.
func (t *term) of(f *Fact) bool { return t.who == f.Who && t.token == f.Term }

// confirm takes another Elected or Named of the term. It returns false if it is no news.
func (t *term) confirm(f Fact) bool {
	was := t.named
	t.address, t.named, t.written, t.atLeast = f.Address, f.What == Named, f.Written, t.atLeast || f.AtLeast
	return was != t.named
}

// full returns the name and the token.
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

// fade ends a term whose leader was last seen at its last renewal.
func (t *term) fade() {
	if !t.named {
		t.until, t.silent = max(t.renewed, t.from), true
	}
}

// free notes that no candidate has to wait for the lease of the term any longer.
func (t *term) free(at time.Duration) {
	if !t.taken {
		t.gone, t.taken = max(at, t.from), true
	}
}

// current returns the latest term, nil before the first.
func (m *Model) current() *term {
	if len(m.terms) == 0 {
		return nil
	}
	return &m.terms[len(m.terms)-1]
}

// numbered returns the term with a token, or nil if it is not kept.
func (m *Model) numbered(token uint64) *term {
	for i := len(m.terms) - 1; i >= 0; i-- {
		if m.terms[i].token == token {
			return &m.terms[i]
		}
	}
	return nil
}

// deadline returns the end of the lease of a term, by the renewals that were seen.
func (m *Model) deadline(t *term) time.Duration {
	if m.renewal.term == t.token {
		return m.renewal.at + m.renewal.lease
	}
	return t.from + m.screen.Lease
}
