package main

import (
	"errors"
	"strconv"
	"strings"
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
	byPeer  bool            // a holder makes the present write, and its process pushes it
	stray   bool            // the present write is of a former life, and may replace any record
	strayed bool            // the cell holds such a write
	strays  map[string]bool // the nonces of all such writes
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
	s := &store{w: w, seq: w.plan.startSeq, strays: map[string]bool{}}
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
	if has := c.Record.Request; has != nil && !has.Offer {
		return // AddRequest would refuse another one, after much work
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

// A database has a standby that may lack its last writes when it takes over. The database then
// reports another era. Each state keeps the era in which it was written, and a version names the
// era in which it was read. A write from a version of another era is refused. Members that start
// after the loss are checked like all others.

// promote moves the store to a standby.
func (s *store) promote() {
	w, lost := s.w, s.cell
	after := w.check.lapse()
	if n := len(s.history); n > 0 && w.promotions.chance(0.8) {
		i := s.releaseBefore(w.promotions.rng.IntN(n))
		s.cell, s.history = s.history[i].cell, s.history[:i]
	}
	s.life.era, s.life.from = s.life.era+1, w.now
	w.tracef(nil, "a standby takes over in era %d, with term %d", s.life.era, s.cell.Record.Term)
	number, _, _ := strings.Cut(string(s.cell.Version), "@")
	s.cell.Version = s.inEra(driver.Version(number))
	w.hinderAll()
	w.check.replaced(&lost, &s.cell)
	s.again, s.changed = nil, w.now
	after()
	w.crash(w.anyone()) // it starts again soon, without any knowledge
}

// edit puts an earlier value back, as a program does that ignores the rules of the store. The store
// notices that, and marks the state as unproven. The version changes, too; an edit that keeps the
// version, as in SQL, is not simulated.
func (s *store) edit() {
	w, n := s.w, len(s.history)
	if n == 0 {
		return
	}
	c := s.history[n-1-w.edits.rng.IntN(min(n, 4))].cell
	s.seq++
	c.Version, c.Unproven = s.inEra(driver.Version(strconv.FormatUint(s.seq, 10))), true
	w.tracef(nil, "an earlier value is put back by hand, with term %d", c.Record.Term)
	w.hinderAll()
	s.again = nil
	after := w.check.lapse()
	s.place(c)
	after()
	w.crash(w.anyone())
}

// releaseBefore returns the last release among the states up to i, or i if there is none. A member
// that trusts this release claims at once, while the holder of the lost term still leads.
func (s *store) releaseBefore(i int) int {
	for j := i; j >= 0; j-- {
		if s.history[j].cell.Record.Released {
			return j
		}
	}
	return i
}

// inherited reports whether a state was written in an earlier era, or by hand.
func (s *store) inherited(c *protocol.Cell) bool {
	return s.w.plan.promotes && c.Kind != protocol.Absent && (c.Era != s.life.era || c.Unproven)
}

// inEra adds the present era to the name of a state.
func (s *store) inEra(v driver.Version) driver.Version {
	if v == "" || !s.w.plan.promotes {
		return v
	}
	return v + driver.Version("@"+strconv.FormatUint(s.life.era, 10))
}

// A store that is deleted and recreated, or that loses its last writes, gives versions that it has
// given before to other states. Members that were absent in that time know a version that now names
// another state.

// life is one history of the store.
type life struct {
	number int           // how often the store was recreated or lost writes
	era    uint64        // the era that the store reports; 0: none
	from   time.Duration // when it began
	base   uint64        // floors count from here
	aim    uint64        // the next write after aimAt gets this sequence, unless it is passed
	aimAt  time.Duration
	victim *node // the member that knows the version aim from before
}

// past is an earlier state.
type past struct {
	cell protocol.Cell
	seq  uint64
}

func (l *life) begin(p *plan) {
	if p.eras {
		l.era = 1
	}
}

// count gives a write its sequence. It may skip some, as if other keys were written.
func (s *store) count(r *record.Record) {
	l := &s.life
	if l.aim > s.seq+1 && r.Held() && s.w.now >= l.aimAt {
		s.seq = l.aim - 1
		s.w.tracef(nil, "version %d recurs", l.aim)
		s.w.arriveLate(l.victim, l.aim)
		l.aim = 0
	}
	s.seq++
}

// arriveLate delivers the delayed last write of a member, which expects this version, when that
// version recurs.
func (w *world) arriveLate(n *node, version uint64) {
	op, sent := n.sent, n.sentAt
	if !op.Write || string(op.Prev) != strconv.FormatUint(version, 10) || w.extra.chance(0.2) {
		return
	}
	w.queue.add(w.now+w.plan.latency, func() {
		if !w.calm {
			w.store.late(sent, op.Prev, op.Record)
		}
	})
}

// ambush stops a member or cuts it off for some leases, and gives the version that it knows to
// another state.
func (w *world) ambush(n *node) {
	stopped := w.extra.chance(0.3)
	if leader := w.leading(); leader != nil && !stopped {
		n = leader // it has a write under way, or will
	}
	if n.alive {
		w.ambushAt(n, known(n), stopped)
	}
}

// ambushAt does so for a given version.
func (w *world) ambushAt(n *node, of driver.Version, stopped bool) {
	p := n.proc
	if w.calm || !n.alive || w.now < w.store.life.aimAt || p.stillUntil > w.now || p.cutUntil > w.now || w.now < max(w.check.amnesty, w.check.fragile) {
		return
	}
	number, _, _ := strings.Cut(string(of), "@")
	version, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return
	}
	until := w.now + w.plan.lease*3 + w.extra.span(2*w.plan.lease)
	if stopped {
		p.stillUntil = until
		w.queue.add(until, func() { w.resume(p, false) })
	} else {
		p.cutUntil = until
	}
	if stopped && n.working && w.extra.chance(0.5) {
		term := n.term
		n.later(0, func() { n.finish(term) }) // it is stopped just when its work ends
	}
	w.store.life.aimAt = until
	w.tracef(n, "is away until %v, and knows version %d", until, version)
	w.queue.add(w.now+w.extra.span(w.plan.lease/2), func() {
		w.recur()
		if w.plan.promotes {
			return // its versions do not recur
		}
		l := &w.store.life
		l.aim, l.aimAt, l.victim = version, until-w.plan.renew*11/10, n
		if !stopped {
			l.aimAt = until + w.extra.span(w.plan.renew)
		}
	})
}

// known returns the version that a member would replace.
func known(n *node) driver.Version {
	c, _ := n.m.InView()
	return c.Version
}

// pounce ambushes a member that is about to learn of the present state.
func (w *world) pounce(n *node, chance float64) {
	if w.plan.recurs() && !w.calm && w.extra.chance(chance) {
		w.ambushAt(n, w.store.cell.Version, true)
	}
}

// recur makes the store begin again, lose its last writes, move to a standby, or show an edited
// value.
func (w *world) recur() {
	switch p := &w.plan; {
	case w.calm:
	case p.promotes && w.edits.chance(0.3):
		w.store.edit()
	case p.promotes:
		w.store.promote()
	case p.remakes && (!p.loses || w.extra.chance(0.5)):
		w.store.remake()
	default:
		w.store.lose()
	}
	w.repairLater()
}

// remake deletes the store and recreates it.
func (s *store) remake() {
	l := &s.life
	s.w.tracef(nil, "the store is deleted and recreated")
	s.w.hinderAll()
	s.w.check.replaced(&s.cell, &protocol.Cell{})
	l.number, l.from = l.number+1, s.w.now
	l.base += s.seq + 1e6
	if l.era > 0 {
		l.era++
	}
	s.seq, s.history, s.again = 0, nil, nil
	s.cell, s.changed = protocol.Cell{Era: l.era, Floor: s.floor()}, s.w.now
	if l.era > 0 && !s.w.plan.peers && s.w.extra.chance(0.7) {
		s.w.push(s.cell)
	}
}

// lose takes back the last writes. Two leaders are allowed for a lease if a member does not know
// the lost state (see forgive).
func (s *store) lose() {
	w := s.w
	if len(s.history) == 0 || w.now < max(w.check.amnesty, w.check.fragile) {
		return
	}
	i := w.extra.rng.IntN(len(s.history))
	if w.extra.chance(0.6) {
		i = 0
	}
	old := s.history[i]
	w.tracef(nil, "the store loses its last %d writes: term %d, version %q", len(s.history)-i, old.cell.Record.Term, old.cell.Version)
	w.check.forgive(w.now + w.longest())
	w.hinderAll()
	w.check.replaced(&s.cell, &old.cell)
	s.life.number++
	s.cell, s.seq, s.history = old.cell, old.seq, s.history[:i]
	s.again, s.changed, s.placed = nil, w.now, w.now
}

// late delivers a write by a member that has seen an earlier state: it was read at the given time,
// or the write was sent then. It may expect a version that recurs, and replace a state that came
// later. The store cannot detect that. Members that know the replaced state must be safe from it.
func (s *store) late(
	based time.Duration, prev driver.Version, r record.Record,
) (driver.Version, protocol.Outcome) {
	if based >= s.placed || s.life.number == 0 || prev == "" || prev != s.cell.Version {
		return s.swap(prev, r)
	}
	s.w.tracef(nil, "a write over the state of %v replaces another state", based)
	twice := s.strays[r.Nonce] // a member may have waited out this very state before
	s.strays[r.Nonce] = true
	wider := r.Drift > s.cell.Record.Drift // who knows only this write waits too short a time
	if s.life.era == 0 || r.Released || based >= s.life.from || s.w.plan.floorless || twice || wider {
		s.w.check.forgive(s.w.now + s.w.longest())
	}
	s.w.check.misled = s.w.now + s.w.longest()
	s.stray = true
	defer func() { s.stray = false }()
	return s.swap(prev, r)
}
