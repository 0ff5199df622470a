package protocol

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/record"
)

const (
	// leeway is the limit for how far a term may be above the terms that the store knows. Elections
	// use one term after another: at one each millisecond, that many last for 34 years.
	leeway = 1 << 40
	// unvouched is the ceiling if the store gives neither a Floor nor a Ceiling. Terms that are
	// times in microseconds reach it in the year 2112. Half of all terms are above it.
	unvouched = 1 << 52
)

// Credible returns c, or a Malformed cell if no honest member can have written its term. Such a
// term does not count (L10): otherwise one record with the last possible term would end the
// election permanently.
//
// Only the store's bounds decide, so all members of one store agree. The term of a claim is one
// above the highest of the store's floor, the term of the record in the cell, and the terms seen.
// Terms that have no credible successor are left out. So the next member finds every claim
// credible.
func Credible(c Cell) Cell {
	if !c.credible(c.Record.Term) {
		if c.Kind == Valid {
			c.Kind, c.Problem = Malformed, c.notCredible("term is", c.Record.Term)
		}
		// The nonce distinguishes this record from another one under a version that recurs (L3a).
		c.Record = record.Record{Lease: c.Record.Lease, Nonce: c.Record.Nonce}
	}
	c.boundFloor()
	return c
}

// boundFloor replaces a floor that is not credible with the term of the record (L10). Otherwise no
// term would be left after a clock once showed the year 2300. The state becomes unproven, because
// the store no longer vouches that there was no higher term. The floor that the store gave still
// decides which terms are credible.
func (c *Cell) boundFloor() {
	vouched := c.Ceiling
	if vouched == 0 {
		vouched = unvouched
	}
	if c.Floor < max(vouched, c.Record.Term)+leeway {
		return
	}
	c.doubt = fmt.Errorf("%w: %d, with term %d in the record and ceiling %d", ErrFloor, c.Floor, c.Record.Term, vouched)
	c.Ceiling, c.Floor, c.Unproven = c.Floor, c.Record.Term, true
}

// unbounded reports whether nothing in the store bounds the earlier terms: its floor is not
// credible, and there is no record with a term.
func (c *Cell) unbounded() bool { return c.doubt != nil && c.Floor == 0 }

func (c *Cell) credible(term uint64) bool { return term < c.ceiling()+leeway && term <= record.MaxTerm }

// succeeded returns term, or 0 if it has no credible successor: the term above it is not credible.
func (c *Cell) succeeded(term uint64) uint64 {
	if c.credible(term + 1) {
		return term
	}
	return 0
}

// notCredible explains why a term does not count.
func (c *Cell) notCredible(what string, term uint64) error {
	return fmt.Errorf("%s %d; credible terms are less than 2^40 above %d here", what, term, c.ceiling())
}

// ceiling returns the larger of the store's Floor and Ceiling, or unvouched if it gives neither.
// Credible terms are less than leeway above it, and at most MaxTerm.
func (c *Cell) ceiling() uint64 {
	if known := max(c.Floor, c.Ceiling); known > 0 {
		return known
	}
	return unvouched
}
