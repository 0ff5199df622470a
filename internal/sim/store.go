package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// store is the register. It shows all the behavior that a real store may show.
type store struct {
	w       *world
	seq     uint64
	life    life
	byPeer  bool // a holder makes the present write, and its process pushes it
	stray   bool // the present write comes from a former life, and may replace any record
	strayed bool // the cell holds such a write
	cell    protocol.Cell
	history []past
	placed  time.Duration // when the present version was given
	changed time.Duration // when this state was put there, without later requests to its holder
	again   func()        // restores the state before the last draft, and then the draft
	often   float64       // the probability of again
	// far: the floor is centuries ahead, and the clock until farUntil.
	far      bool
	farUntil time.Duration
}

const never driver.Version = "never"

func newStore(w *world) *store {
	s := &store{w: w, seq: w.plan.startSeq}
	s.life.begin(&w.plan)
	if w.plan.pristine {
		s.cell = protocol.Cell{Version: never, Pristine: true}
	}
	return s
}

// floor returns the floor that the store vouches for: its sequence, its clock, or nothing.
func (s *store) floor() uint64 {
	switch {
	case s.w.plan.floorless:
		return 0
	case s.far:
		return 1<<60 + s.seq
	case s.w.plan.clockFloor:
		return uint64(epoch.Add(s.w.now).UnixMilli())
	}
	return s.life.base + s.seq
}

// ceiling returns a bound on terms that holds while the clock is not centuries ahead.
func (s *store) ceiling() uint64 {
	if s.w.plan.farClock {
		return 1 << 52
	}
	return 0
}

// misclock sets the clock of the store centuries ahead for a while. The floor stays there until the
// first write after that while. Without a record nothing else would bound the terms.
func (s *store) misclock() {
	if s.cell.Record.Term == 0 {
		return
	}
	s.far, s.farUntil = true, s.w.now+s.w.farClocks.span(2*s.w.plan.lease)
	s.w.tracef(nil, "the store's clock is centuries ahead until %v", s.farUntil)
	s.w.hinderAll()
}

func (s *store) read() protocol.Cell {
	c := s.cell
	if w := s.w; w.plan.stale && !w.calm && len(s.history) > 0 && w.chance(0.1) {
		return s.history[w.rng.IntN(len(s.history))].cell
	}
	c.Floor, c.Ceiling, c.Era, c.Unproven = s.floor(), s.ceiling(), s.life.era, s.inherited(&s.cell)
	return c
}

func (s *store) swap(prev driver.Version, r record.Record) (driver.Version, protocol.Outcome) {
	if prev != s.cell.Version {
		return "", protocol.Conflict
	}
	s.far = s.far && s.w.now < s.farUntil
	if !s.stray {
		s.w.check.write(&s.cell, &r)
		s.w.check.precede(&r)
	}
	if s.w.plan.replay && s.w.plan.erase && prev == "" {
		s.again = func() {
			s.purge()
			s.swap("", r)
		}
		s.often = 0.2
	}
	vacant := s.again != nil && s.cell.Kind == protocol.Valid && s.cell.Record.LeaderID == ""
	s.count(&r)
	s.byPeer = r.LeaderID != ""
	defer func() { s.byPeer = false }()
	s.place(protocol.Cell{Kind: protocol.Valid, Record: r, Version: s.version(&r)})
	if vacant && r.Held() && !s.w.calm && s.w.chance(s.often) {
		s.w.queue.add(s.w.now+s.w.span(s.w.plan.poll), s.relapse)
	}
	return s.cell.Version, protocol.Applied
}

// relapse loses the record, by a purge or by the same foreign bytes as before. Then a proxy
// redelivers the request that put a vacant record there.
func (s *store) relapse() {
	if !s.w.calm && s.again != nil {
		s.w.tracef(nil, "the record is lost, and a vacant one put there again")
		s.again()
	}
}

// put sets a new state, in place of any other, and pushes it.
func (s *store) put(c protocol.Cell) {
	s.seq++
	c.Version = s.inEra(driver.Version(strconv.FormatUint(s.seq, 10)))
	if c.Kind == protocol.Foreign {
		c.Version = "hash of foreign bytes"
	}
	s.place(c)
}

// version returns the version of a swap. Vacant records have versions like ETags: the same bytes
// give the same version. So do foreign bytes, which are always the same.
func (s *store) version(r *record.Record) driver.Version {
	if r.LeaderID == "" {
		return s.inEra(driver.Version("hash of " + r.Nonce))
	}
	return s.inEra(driver.Version(strconv.FormatUint(s.seq, 10)))
}

func (s *store) place(c protocol.Cell) {
	s.remember()
	if c.Record.Nonce == "" || c.Record.Nonce != s.cell.Record.Nonce {
		s.changed = s.w.now
	}
	s.w.check.replaced(&s.cell, &c)
	c.Floor, c.Ceiling, c.Era = s.floor(), s.ceiling(), s.life.era
	s.cell, s.placed, s.strayed = c, s.w.now, s.stray
	if !s.w.deaf && (s.byPeer || !s.w.plan.peers) {
		s.w.push(c)
	}
}

// purge removes the record without a delete marker.
func (s *store) purge() {
	s.remember()
	s.w.check.replaced(&s.cell, &protocol.Cell{})
	s.seq++
	s.cell, s.changed = protocol.Cell{}, s.w.now
}

func (s *store) remember() {
	keep := 4
	if s.w.plan.loses {
		keep = 20
	}
	old := s.cell
	old.Floor = s.floor()
	if len(s.history) == keep {
		copy(s.history, s.history[1:])
		s.history = s.history[:keep-1]
	}
	s.history = append(s.history, past{old, s.seq})
}

// requestOf is the request of a member for itself, if the cell has the term that it saw. It
// replaces no offer to another, and accepts only an offer that is still there.
func (s *store) requestOf(t protocol.Transition, to string) {
	q := s.cell.Record.Request
	offered := q != nil && q.Offer && q.To == to
	if s.cell.Record.Term == t.Term && (offered || q == nil && !t.Accepts) {
		s.request(to)
	}
}

func (s *store) request(to string) { s.ask(record.Request{To: to, By: "operator"}) }

// ask asks the present holder to hand over, as another program does: by a compare-and-swap that
// adds a request to the bytes of the record.
func (s *store) ask(q record.Request) {
	c := s.cell
	if c.Kind != protocol.Valid || !c.Record.Held() || s.inherited(&c) {
		return
	}
	value, err := record.Encode(c.Record)
	if err == nil {
		q.Term = c.Record.Term
		value, err = record.AddRequest(value, q)
	}
	if errors.Is(err, record.ErrRequested) {
		return
	}
	if err == nil {
		c.Record, err = record.Decode(value)
	}
	if err != nil {
		s.w.check.failf("a request cannot be added: %v", err)
	}
	s.put(c)
}
