package protocol

import "github.com/tenure-go/tenure/internal/record"

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
