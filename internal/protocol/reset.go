package protocol

import (
	"time"

	"github.com/tenure-go/tenure/internal/record"
)

// Vacate returns the record that an operator puts in place of a Foreign or Malformed cell; false if
// the cell is neither. A leader that does not know about the damage may still be alive. So the
// record states this Config's lease, or the cell's if that is longer and below MaxLease.
//
// The record is a draft because the damaged bytes may recur, as an absence may (see draft). Where
// versions are made from the content, the write that replaced those bytes could then be applied
// once more.
func (m *Machine) Vacate(c Cell) (record.Record, bool) {
	c = Credible(c)
	if c.Kind != Foreign && c.Kind != Malformed {
		return record.Record{}, false
	}
	lease := m.cfg.Lease
	if !c.illegible() {
		lease = max(lease, c.Record.Lease)
	}
	return record.Record{Term: m.highestKnownTerm(&c), Seq: 0, Lease: lease, Nonce: m.nonce()}, true
}

// EndLease returns the record that an operator who knows that no member leads puts in place of a
// Valid or Absent cell. It is a release in a new term: a member whose view is sound (L3a) claims
// without a wait, whatever leases it has seen. EndLease returns an error for any other cell, and if
// nothing bounds the earlier terms.
func (m *Machine) EndLease(c Cell, by string) (record.Record, error) {
	c = Credible(c)
	if err := c.Fault(); err != nil {
		return record.Record{}, err
	}
	if c.unbounded() {
		return record.Record{}, c.doubt
	}
	return record.Record{
		LeaderID: by, Incarnation: m.nonce(), Term: m.highestKnownTerm(&c) + 1, Seq: 1, Released: true,
		Lease: time.Millisecond, Nonce: m.nonce(),
	}, nil
}
