package memory

import (
	"maps"

	"github.com/tenure-go/tenure/driver"
)

// This file has the actions of an operator, a backup or a foreign program on a store.

// Put writes a copy of value whatever the version of the cell, as a foreign program might: it
// checks neither the key nor the length. It returns the version of the new state.
func (p *Polled) Put(key string, value []byte) driver.Version {
	p.mu.Lock()
	version, f := p.write(key, value)
	p.mu.Unlock()
	p.push(f)
	return version
}

// Delete leaves a delete marker in the cell, whether or not it held anything, and returns the
// marker's version.
func (p *Polled) Delete(key string) driver.Version { return p.Put(key, nil) }

// Purge removes the cell with its marker and version. The store still knows that the key was
// written before. A purge does not raise the store's sequence. On a cell that is absent without a
// marker it does nothing.
func (p *Polled) Purge(key string) {
	p.mu.Lock()
	var f *feed
	if p.cells[key].seq != 0 {
		p.cells[key] = cell{}
		f = p.queue(key, cell{})
	}
	p.mu.Unlock()
	p.push(f)
}

// Snapshot is the contents of a store at one moment, sequence included. The zero Snapshot is that
// of an empty store.
type Snapshot struct {
	seq   uint64
	cells map[string]cell
}

// Snapshot returns the present contents. It changes nothing, and later writes do not change it.
func (p *Polled) Snapshot() Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Snapshot{seq: p.seq, cells: maps.Clone(p.cells)}
}

// Restore puts the contents of a snapshot back, as a restored backup does: versions and sequences
// recur, which breaks the contract of driver.Store. Watches stay, but are not notified. A snapshot
// may be restored many times, into any store.
func (p *Polled) Restore(s Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq = s.seq
	p.cells = map[string]cell{}
	maps.Copy(p.cells, s.cells)
}

// Recreate removes all cells and begins the sequence again, as when an operator deletes a bucket
// and recreates it. Versions and sequences recur, in another era, and no cell is pristine. Watches
// stay, but are not notified.
func (p *Polled) Recreate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq, p.cells = 0, map[string]cell{}
	p.era++
}
