package protocol

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/record"
)

const (
	// leeway is how far above all that the store knows a term may be. Elections take one term after the
	// other, and one a millisecond would need 34 years for as many.
	leeway = 1 << 40
	// unvouched is above every good term where the store does not say. Terms that are times in
	// microseconds reach it in the year 2112, and half of all terms are left above it.
	unvouched = 1 << 52
)

// Credible returns c, or a Malformed cell if nobody can have come by its term honestly: one record
// with the last term there is would end the election for good. Such a term counts for nothing (L15).
//
// What the store says decides alone, so all members of one store judge alike. A claim takes one
// above the store's floor, a credible record and the terms seen, and drops those of them that leave
// no room below the limit: no claim is above what the next member finds credible.
func Credible(c Cell) Cell {
	if c.credible(c.Record.Term) {
		return c
	}
	if c.Kind == Valid {
		c.Kind, c.Problem = Malformed, c.outOfReach("term is", c.Record.Term)
	}
	// The nonce tells this record from another one of a version that recurs (L3a).
	c.Record = record.Record{Lease: c.Record.Lease, Nonce: c.Record.Nonce}
	return c
}

// credible reports whether a record may have this term.
func (c *Cell) credible(term uint64) bool { return term < c.ceiling()+leeway && term <= record.MaxTerm }

// succeeded returns a term that a claim can go on from, or 0: the next one would not be credible.
func (c *Cell) succeeded(term uint64) uint64 {
	if c.credible(term + 1) {
		return term
	}
	return 0
}

// outOfReach says why a term counts for nothing.
func (c *Cell) outOfReach(what string, term uint64) error {
	return fmt.Errorf("%s %d; good terms are less than 2^40 above %d here", what, term, c.ceiling())
}

// ceiling is what no good term exceeds, as far as the store knows.
func (c *Cell) ceiling() uint64 {
	if known := max(c.Floor, c.Ceiling); known > 0 {
		return known
	}
	return unvouched
}
