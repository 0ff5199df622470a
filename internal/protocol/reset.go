package protocol

import "github.com/tenure-go/tenure/internal/record"

// Vacate is the record that an operator puts in place of a cell that no election can go on from; false if this one is
// sound, or there is none. A leader may be there yet who does not know what became of its record, so the longest lease
// that is known of is waited out. The record is a draft: the same bytes may be written again, as absence may come again,
// and where versions are made of the content the request that replaced them could then be applied once more.
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
