package protocol

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/record"
)

const (
	// leeway is how far above all that is known a term may be. Elections take one term after the
	// other, and one a millisecond would need 34 years for as many.
	leeway = 1 << 40
	// unvouched is above every good term where the store does not say. Terms that are times in
	// microseconds reach it in the year 2112, and half of all terms are left above it.
	unvouched = 1 << 52
)

// Credible returns c, or a Malformed cell if nobody can have come by its term honestly: one record
// with the last term there is would end the election for good. Such a term counts for nothing (L15).
//
// Whoever claims takes one above the store's floor, a credible record and the terms it has seen. So
// the terms of honest members never rise above what the next one finds credible.
func (m *Machine) Credible(c Cell) Cell {
	known := max(c.ceiling(), m.view.highestSeenTerm())
	term := c.Record.Term
	if term <= known+leeway {
		return c
	}
	if c.Kind == Valid {
		c.Kind = Malformed
		c.Problem = fmt.Errorf("term is %d; good terms are at most 2^40 above %d here", term, known)
	}
	// The nonce tells this record from another one of a version that recurs (L3a).
	c.Record = record.Record{Lease: c.Record.Lease, Nonce: c.Record.Nonce}
	return c
}

// ceiling is what no good term exceeds, as far as the store knows.
func (c *Cell) ceiling() uint64 {
	if known := max(c.Floor, c.Ceiling); known > 0 {
		return known
	}
	return unvouched
}
