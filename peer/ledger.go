package peer

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// ledger holds the elections that this process leads, as far as the writes and reads that pass
// through show it. Nothing under its lock blocks, so a renewal never waits for a follower.
type ledger struct {
	clock  clock.Clock
	margin time.Duration // the least
	own    func(incarnation string) bool

	mu    sync.Mutex
	seats map[string]*seat // for each key that an own incarnation ever tried to write
}

// seat is one key. Its page is served; streams wait for another.
type seat struct {
	page    *page // nil: not leading
	pending []*page
	changed chan struct{} // closed and replaced with each page
	streams originCounter
	// seen is the version in which a read showed the page's term last, if any did: a request
	// changes it.
	seen driver.Version
	// moves counts changes by writers. A read during which it changed may be older than the page.
	moves uint64
}

// page is one write of a leader's, with the time that it is good for. It is never changed once
// made.
type page struct {
	value   []byte
	prev    driver.Version // the version that it replaced
	version driver.Version
	record  record.Record
	sent    clock.Reading
	budget  time.Duration
}

func newLedger(c clock.Clock, margin time.Duration, own func(string) bool) *ledger {
	return &ledger{clock: c, margin: margin, own: own, seats: map[string]*seat{}}
}

// left is how long the write keeps its lease valid, counted like the leader's own deadline from
// before it was sent.
func (p *page) left(now clock.Reading) time.Duration {
	return p.budget - now.LeaderSince(p.sent.Instant)
}

// entry is the entry for watches. The record's own term is floor enough: the claim of this term was
// at least one above a floor that was read for the state it replaced, and each write of the term
// since then was a compare-and-swap on the one before (see follows), perhaps with a request in it.
// So at no state up to this one was there a higher term.
func (p *page) entry() driver.Entry {
	return driver.Entry{Value: p.value, Version: p.version, Floor: p.record.Term}
}

// after reports whether p is a later write of the same leader's, or of a later leader's.
func (p *page) after(q *page) bool {
	if p.record.Term != q.record.Term {
		return p.record.Term > q.record.Term
	}
	return p.record.Seq > q.record.Seq
}

func (p *page) sameTerm(r *record.Record) bool {
	return p.record.Incarnation == r.Incarnation && p.record.Term == r.Term
}

// maxPending is how many writes of unknown outcome are kept in mind: more than an election makes
// between two reads.
const maxPending = 16

// begin takes note of a write before it is sent. It returns nil for one that is not a leader's:
// foreign bytes, a vacant record, or a request put into a leader's own record, whose lease it does
// not prolong.
func (l *ledger) begin(key string, prev driver.Version, value []byte) *page {
	r, err := record.Decode(value)
	if err != nil || r.LeaderID == "" || r.Request != nil || !l.own(r.Incarnation) || bytes.ContainsAny(value, "\r\n") {
		return nil
	}
	a := &page{value: bytes.Clone(value), prev: prev, record: r, sent: l.clock.Now(), budget: l.budget(&r)}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.seat(key)
	s.moves++
	if len(s.pending) == maxPending {
		s.pending = s.pending[1:]
	}
	s.pending = append(s.pending, a)
	return a
}

// budget is the part of a lease that the leader uses. The sending of a release ends it.
func (l *ledger) budget(r *record.Record) time.Duration {
	if r.Released {
		return 0
	}
	return r.Lease - max(l.margin, protocol.Margin(r.Lease, l.clock.Drift(), protocol.TimerLateness(r.Lease), 0))
}

func (l *ledger) seat(key string) *seat {
	s := l.seats[key]
	if s == nil {
		s = &seat{changed: make(chan struct{})}
		l.seats[key] = s
	}
	return s
}

// finish takes the outcome of a write. It returns the page that it made, nil if it made none. After
// every error the write may still have been applied; a read may show it.
func (l *ledger) finish(key string, a *page, v driver.Version, err error) *page {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.seat(key)
	s.moves++
	// A read may have shown the write before its own answer came.
	if err != nil || s.page != nil && (s.page.after(a) || s.page.record.Nonce == a.record.Nonce) {
		return nil
	}
	return s.confirm(a, a.value, v)
}

// confirm turns to the page of a write that was applied. All others are superseded by it, or dead.
// A write that does not follow on the term's last one, such as a release put where the record was
// removed, is no page: another record may have been there in between.
func (s *seat) confirm(a *page, value []byte, v driver.Version) *page {
	s.pending = nil
	if !s.follows(a) {
		s.turn(nil)
		return nil
	}
	p := *a
	p.value, p.version = value, v
	s.turn(&p)
	return &p
}

// follows reports whether a write is a claim, which is the first of its term, or replaced the
// term's last one.
func (s *seat) follows(a *page) bool {
	if a.record.Seq == 1 && !a.record.Released {
		return true
	}
	if s.page == nil || !s.page.sameTerm(&a.record) || s.page.left(a.sent) <= 0 {
		// another leader may have been there after the lease was over, before a backup brought this
		// back
		return false
	}
	return a.prev == s.page.version || a.prev == s.seen && s.seen != ""
}

func (s *seat) turn(p *page) {
	s.page, s.seen = p, ""
	close(s.changed)
	s.changed = make(chan struct{})
}

// mark is taken before a read, for observe.
func (l *ledger) mark(key string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.seats[key]; s != nil {
		return s.moves
	}
	return 0
}

// observe takes the result of a read. It returns the page of an own write that the read proves to
// have been applied, nil if there is none, and whether the read is newer than all writes of this
// process.
func (l *ledger) observe(key string, mark uint64, c cell) (news *page, current bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.seats[key]
	if s == nil {
		return nil, true
	}
	current = s.moves == mark
	if a := s.wrote(&c); a != nil {
		return s.confirm(a, bytes.Clone(c.Value), c.Version), current
	}
	switch {
	case s.page == nil:
	case s.page.accounts(&c):
		s.seen = c.Version
	case current:
		s.pending = nil
		s.turn(nil)
	}
	return nil, current
}

// wrote finds the own write of unknown outcome that made this cell.
func (s *seat) wrote(c *cell) *page {
	i := slices.IndexFunc(s.pending, func(a *page) bool {
		return c.valid && a.sameTerm(&c.record) && a.record.Nonce == c.record.Nonce
	})
	if i < 0 || bytes.ContainsAny(c.Value, "\r\n") || s.page != nil && s.page.after(s.pending[i]) {
		return nil
	}
	return s.pending[i]
}

// accounts reports whether this page being the leader's explains the cell: it is the page, perhaps
// with a request in it, or one from before.
func (p *page) accounts(c *cell) bool { return c.valid && p.sameTerm(&c.record) }

// valid reports whether the lease is valid now. Of writes of unknown outcome the shortest promise
// counts.
func (s *seat) valid(now clock.Reading) bool {
	if s.page == nil {
		return false
	}
	left := s.page.left(now)
	for _, a := range s.pending {
		if s.page.sameTerm(&a.record) {
			left = min(left, a.left(now))
		}
	}
	return left > 0
}

// led returns the keys with a valid lease now.
func (l *ledger) led() []string {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []string
	for key, s := range l.seats {
		if s.valid(now) {
			keys = append(keys, key)
		}
	}
	return keys
}

// look returns the seat and the page to serve for a key, or nil if its lease is not valid now.
func (l *ledger) look(key string) (*seat, *page) {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.seats[key]; s != nil && s.valid(now) {
		return s, s.page
	}
	return nil, nil
}

// next returns the page that a stream shows, and a channel to wait on then. Nil: the stream ends.
// The page of a release is shown, once, to streams from before it.
func (l *ledger) next(s *seat) (*page, <-chan struct{}) {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.page == nil || !s.page.record.Released && s.page.left(now) <= 0 {
		return nil, nil
	}
	return s.page, s.changed
}

// enter counts a stream in, unless there are too many already.
func (l *ledger) enter(s *seat, origin string, c *Config) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.streams.add(origin, c.MaxStreams, c.MaxStreamsPerAddress)
}

func (l *ledger) leave(s *seat, origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.streams.drop(origin)
}
