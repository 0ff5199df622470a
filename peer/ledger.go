package peer

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// ledger holds the elections that this process leads. It learns their records from the reads and
// writes of the Store, and asks the election itself how long its lease is valid. Nothing under its
// lock blocks, so a renewal never waits for a follower.
type ledger struct {
	own *identities

	mu    sync.Mutex
	seats map[string]*keyState // for each key that an own incarnation ever tried to write
}

// keyState is the state of one key. Its current write is served, and streams wait for the next one.
type keyState struct {
	current *leaderWrite // nil: not leading
	pending []*leaderWrite
	changed chan struct{} // closed and replaced at each change of current
	streams originCounter
	// seen is the last version of the current term that a read has shown, if any: a request changes
	// the version.
	seen driver.Version
	// writes counts the begins and ends of writes. If it changed during a read, the result of that
	// read may be older than the current write.
	writes uint64
}

// leaderWrite is one write of a leader. It is immutable.
type leaderWrite struct {
	value   []byte
	prev    driver.Version // the version that it replaced
	version driver.Version
	record  record.Record
	inTime  bool // the lease of its term was valid when it was sent
}

// entry returns the entry for watches. Its Floor is the record's own term. The claim of this term
// was at least one above a floor that was read for the state it replaced. Each later write of the
// term was a compare-and-swap on the one before (see continuesTerm), perhaps with a request in it.
// So no state up to this one had a higher term.
func (p *leaderWrite) entry() driver.Entry {
	return driver.Entry{Value: p.value, Version: p.version, Floor: p.record.Term}
}

// supersedes reports whether p is a later write than q, of the same leader or of a later one.
func (p *leaderWrite) supersedes(q *leaderWrite) bool {
	if p.record.Term != q.record.Term {
		return p.record.Term > q.record.Term
	}
	return p.record.Seq > q.record.Seq
}

func (p *leaderWrite) sameTerm(r *record.Record) bool {
	return p.record.Incarnation == r.Incarnation && p.record.Term == r.Term
}

// maxPending bounds the kept writes of unknown outcome: an election makes fewer between two reads.
const maxPending = 16

// begin records a write before it is sent. It returns nil if it is not the write of a leader:
// foreign bytes, a vacant record, or a request that is added to the record of this process, which
// does not extend the lease.
func (l *ledger) begin(key string, prev driver.Version, value []byte) *leaderWrite {
	r, err := record.Decode(value)
	if err != nil || r.LeaderID == "" || r.Request != nil || !l.own.isOwn(r.Incarnation) || bytes.ContainsAny(value, "\r\n") {
		return nil
	}
	a := &leaderWrite{value: bytes.Clone(value), prev: prev, record: r, inTime: l.own.left(&r) > 0}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stateOf(key)
	s.writes++
	if len(s.pending) == maxPending {
		s.pending = s.pending[1:]
	}
	s.pending = append(s.pending, a)
	return a
}

func (l *ledger) stateOf(key string) *keyState {
	s := l.seats[key]
	if s == nil {
		s = &keyState{changed: make(chan struct{})}
		l.seats[key] = s
	}
	return s
}

// finish records the outcome of a write. It returns the write that is current now, or nil if this
// one is not. After any error the write may still have been applied; a later read may show that.
func (l *ledger) finish(key string, a *leaderWrite, v driver.Version, err error) *leaderWrite {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stateOf(key)
	s.writes++
	// A read may have shown the write before its own answer came.
	if err != nil || s.current != nil && (s.current.supersedes(a) || s.current.record.Nonce == a.record.Nonce) {
		return nil
	}
	return s.confirm(a, a.value, v)
}

// confirm makes a write that was applied the current one. All pending writes are superseded or can
// no longer be applied. If the write does not continue the term, such as a release after the record
// was removed, there is no current write: another record may have been there in between.
func (s *keyState) confirm(a *leaderWrite, value []byte, v driver.Version) *leaderWrite {
	s.pending = nil
	if !s.continuesTerm(a) {
		s.setCurrent(nil)
		return nil
	}
	p := *a
	p.value, p.version = value, v
	s.setCurrent(&p)
	return &p
}

// continuesTerm reports whether a write is a claim, which is the first write of its term, or
// replaced the last write of the term.
func (s *keyState) continuesTerm(a *leaderWrite) bool {
	if a.record.Seq == 1 && !a.record.Released {
		return true
	}
	if s.current == nil || !s.current.sameTerm(&a.record) || !a.inTime {
		// after the end of the lease, another leader may have written before a backup was restored
		return false
	}
	return a.prev == s.current.version || a.prev == s.seen && s.seen != ""
}

func (s *keyState) setCurrent(p *leaderWrite) {
	s.current, s.seen = p, ""
	close(s.changed)
	s.changed = make(chan struct{})
}

// mark returns the count of writes before a read, for observe.
func (l *ledger) mark(key string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.seats[key]; s != nil {
		return s.writes
	}
	return 0
}

// observe records the result of a read. If the read proves that a pending write of this process was
// applied, it returns that write. It also returns whether the read is newer than all writes of this
// process.
func (l *ledger) observe(key string, mark uint64, c cell) (news *leaderWrite, current bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.seats[key]
	if s == nil {
		return nil, true
	}
	current = s.writes == mark
	if a := s.pendingWrite(&c); a != nil {
		return s.confirm(a, bytes.Clone(c.Value), c.Version), current
	}
	switch {
	case s.current == nil:
	case s.current.sameLeader(&c):
		s.seen = c.Version
	case current:
		s.pending = nil
		s.setCurrent(nil)
	}
	return nil, current
}

// pendingWrite returns the write of unknown outcome that made this cell, or nil.
func (s *keyState) pendingWrite(c *cell) *leaderWrite {
	i := slices.IndexFunc(s.pending, func(a *leaderWrite) bool {
		return c.valid && a.sameTerm(&c.record) && a.record.Nonce == c.record.Nonce
	})
	if i < 0 || bytes.ContainsAny(c.Value, "\r\n") || s.current != nil && s.current.supersedes(s.pending[i]) {
		return nil
	}
	return s.pending[i]
}

// sameLeader reports whether the cell is of this term: it holds this write, perhaps with a request
// in it, or an earlier one.
func (p *leaderWrite) sameLeader(c *cell) bool { return c.valid && p.sameTerm(&c.record) }

// holds returns the current write, or nil if the term is released or its release was sent: the
// leader no longer leads then.
func (s *keyState) holds() *leaderWrite {
	if s.current == nil || s.current.record.Released {
		return nil
	}
	for _, a := range s.pending {
		if a.record.Released && s.current.sameTerm(&a.record) {
			return nil
		}
	}
	return s.current
}

// led returns the keys with a valid lease now.
func (l *ledger) led() (keys []string) {
	for _, key := range l.tried() {
		if _, p := l.look(key); p != nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// tried returns the keys that an own incarnation ever tried to write.
func (l *ledger) tried() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.seats))
}

// look returns the state and the write to serve for a key, or nil if its lease is not valid now.
func (l *ledger) look(key string) (*keyState, *leaderWrite) {
	s, p := l.held(key)
	if p == nil || l.left(p) <= 0 {
		return nil, nil
	}
	return s, p
}

func (l *ledger) held(key string) (*keyState, *leaderWrite) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.seats[key]; s != nil {
		return s, s.holds()
	}
	return nil, nil
}

// left returns for how much longer the lease of a write is valid, as its election says.
func (l *ledger) left(p *leaderWrite) time.Duration { return l.own.left(&p.record) }

// next returns the write that a stream sends, and a channel that is closed at the next change. If
// the write is nil, the stream ends. A release is sent once, to streams that began before it.
func (l *ledger) next(s *keyState) (*leaderWrite, <-chan struct{}) {
	p, changed := l.present(s)
	if p == nil || !p.record.Released && l.left(p) <= 0 {
		return nil, nil
	}
	return p, changed
}

func (l *ledger) present(s *keyState) (*leaderWrite, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.current, s.changed
}

// enter counts a new stream, unless a limit is reached.
func (l *ledger) enter(s *keyState, origin string, c *Config) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.streams.add(origin, c.MaxStreams, c.MaxStreamsPerAddress)
}

func (l *ledger) leave(s *keyState, origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.streams.drop(origin)
}
