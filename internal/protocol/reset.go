package protocol

import "github.com/tenure-go/tenure/internal/record"

// Vacate returns the record that an operator puts in place of a cell that no election can go on
// from; false if this cell is sound or empty. A leader may still be alive that does not know about
// the damage. So members wait out the configured lease, or the one that the cell shows if that is
// longer. The record is a draft: the same bytes may be written again, as absence may recur. Where
// versions are made from the content, the request that replaced those bytes could then be applied
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
