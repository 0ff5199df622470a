// Package memory is a store in the memory of one process: for tests, examples and experiments.
//
// It behaves like a bucket of a NATS stream. One sequence counts all writes, deletions included.
// The version of a cell is the sequence of its last write in decimal, and the floor of an entry is
// the last sequence of the whole store at the read (of a pushed entry: the sequence of its write).
// There are three kinds of absence:
//
//   - never written: the version is "never", and the cell is pristine unless the store was
//     recreated;
//   - deleted: the version is that of the delete marker;
//   - purged: the version is empty, and the cell is not pristine.
//
// A compare-and-swap from "never" succeeds only on a cell that was never written. A
// compare-and-swap from the empty version succeeds on such a cell and on a purged one.
//
// [New] makes a store that pushes changes, [NewPolled] one that does not, so that both ways of
// following an election can be tested. No method blocks. A call fails if its context has ended
// before the call begins. To try a program in an outage, wrap the store with package driver/faults;
// package tenuretest decides which candidate is elected.
package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

// never is the version of a cell that was never written. It is not a number, so no write has it.
const never driver.Version = "never"

// Polled is a store without watch. It must be made by NewPolled. Its methods may be called from
// many goroutines. It implements driver.Store, driver.Bounded, driver.Inspector and
// driver.Presence.
type Polled struct {
	mu      sync.Mutex
	seq     uint64
	era     uint64 // 1, and one more each time the store is recreated
	cells   map[string]cell
	watches watches.Set
	feeds   map[string]*feed // by key; stays empty unless the Polled is part of a Store

	present []*announced // never changed in place
}

// Store is a Polled that also pushes changes. It must be made by New. It implements driver.Watcher
// as well.
type Store struct{ Polled }

// New returns an empty store with watch.
func New() *Store { return &Store{Polled: empty()} }

// NewPolled returns an empty store without watch.
func NewPolled() *Polled {
	p := empty()
	return &p
}

func empty() Polled {
	return Polled{era: 1, cells: map[string]cell{}, feeds: map[string]*feed{}}
}

// cell is one register. Its value is never changed in place, so that cells can be shared with
// snapshots. A key without a cell was never written.
type cell struct {
	value []byte
	seq   uint64 // of the last write; 0 when purged
}

func (c cell) version() driver.Version {
	if c.seq == 0 {
		return ""
	}
	return driver.Version(strconv.FormatUint(c.seq, 10))
}

// Read returns the state of the cell. The caller may keep the value. The errors are those of
// CheckKey and, if the context has ended, the context's.
func (p *Polled) Read(ctx context.Context, key string) (driver.Entry, error) {
	if err := p.admit(ctx, key); err != nil {
		return driver.Entry{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entry(key), nil
}

// CompareAndSwap replaces the state of the cell by a copy of value if its version still is prev,
// and returns the version of the new state. An empty value is a delete marker. It returns an error
// that wraps driver.ErrConflict if the version was different. Every other error means here that
// nothing was applied: those of CheckKey, the context's if it has ended, and a plain one if value
// is longer than driver.MaxValue.
func (p *Polled) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := p.admit(ctx, key); err != nil {
		return "", err
	}
	if len(value) > driver.MaxValue {
		return "", fmt.Errorf("memory: a value of %d bytes is longer than %d", len(value), driver.MaxValue)
	}
	version, ok := p.swap(key, prev, value)
	if !ok {
		return "", fmt.Errorf("memory: compare and swap %q: %w", key, driver.ErrConflict)
	}
	return version, nil
}

// swap pushes after it has released the lock.
func (p *Polled) swap(key string, prev driver.Version, value []byte) (driver.Version, bool) {
	p.mu.Lock()
	if !p.hasVersion(key, prev) {
		p.mu.Unlock()
		return "", false
	}
	version, f := p.write(key, value)
	p.mu.Unlock()
	p.push(f)
	return version, true
}

// admit returns an error if the context has ended or the key is invalid.
func (p *Polled) admit(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.CheckKey(key)
}

// entry is called under the lock.
func (p *Polled) entry(key string) driver.Entry {
	c, written := p.cells[key]
	if !written {
		return driver.Entry{Version: never, Floor: p.seq, Pristine: p.era == 1, Era: p.era}
	}
	return driver.Entry{Value: bytes.Clone(c.value), Version: c.version(), Floor: p.seq, Era: p.era}
}

// hasVersion reports whether the cell has this version. It is called under the lock.
func (p *Polled) hasVersion(key string, version driver.Version) bool {
	c, written := p.cells[key]
	return version == c.version() || version == never && !written
}

// write writes the cell with the next sequence and queues the entry. It is called under the lock;
// the caller pushes after it has released the lock.
func (p *Polled) write(key string, value []byte) (driver.Version, *feed) {
	p.seq++
	c := cell{value: bytes.Clone(value), seq: p.seq}
	p.cells[key] = c
	return c.version(), p.queue(key, c)
}

const (
	// minLease allows for timers that fire late, the only delay of this store.
	minLease = 50 * time.Millisecond
	maxKey   = 512
)

// MinLease returns 50 ms.
func (p *Polled) MinLease() time.Duration { return minLease }

// MaxLease returns 1 h, as for any store without a limit of its own.
func (p *Polled) MaxLease() time.Duration { return driver.MaxLease }

// CheckKey returns an error unless the key is valid UTF-8 of 1 to 512 bytes.
func (p *Polled) CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("memory: the key is empty")
	case len(key) > maxKey:
		return fmt.Errorf("memory: a key of %d bytes is longer than %d", len(key), maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("memory: key %q is not valid UTF-8", key)
	}
	return nil
}

// Inspect returns one piece of advice: that the store lives in one process. The lease makes no
// difference. The error is the context's, if it has ended.
func (p *Polled) Inspect(ctx context.Context, _ time.Duration) ([]driver.Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return []driver.Finding{{
		Severity: driver.Advice,
		Setting:  "process",
		Problem:  "only candidates in this process take part, and everything is forgotten when it ends",
		Remedy:   "use a store that all candidates reach",
	}}, nil
}

// Keys returns the keys of all cells that hold a value. The error is the context's if it has ended.
func (p *Polled) Keys(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for key, c := range p.cells {
		if len(c.value) > 0 {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all, nil
}

// CheckRights returns nil, since every caller may write. The error is the context's, if it has
// ended.
func (p *Polled) CheckRights(ctx context.Context, _ string) error { return ctx.Err() }

var _ driver.Presence = (*Polled)(nil)

// announced is a candidate that answers.
type announced struct {
	key string
	who func() []byte
}

// Announce answers questions about the key until stop is called. The errors are those of CheckKey
// and, if the context has ended, the context's.
func (p *Polled) Announce(ctx context.Context, key string, who func() []byte) (stop func(), err error) {
	if err := p.admit(ctx, key); err != nil {
		return nil, err
	}
	a := &announced{key, who}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.present = append(p.present, a)
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.present = slices.DeleteFunc(slices.Clone(p.present), func(one *announced) bool { return one == a })
	}), nil
}

// Candidates returns the answers of the candidates of a key, or of all if it is empty. The error is
// the context's if it has ended.
func (p *Polled) Candidates(ctx context.Context, key string) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	present := p.present
	p.mu.Unlock()
	var all [][]byte
	for _, a := range present {
		if key != "" && a.key != key {
			continue
		}
		if one := a.who(); len(one) > 0 {
			all = append(all, one)
		}
	}
	return all, nil
}

// What follows are the actions of an operator, a backup or a foreign program on a store.

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
