package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

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
	s.again, s.changed = nil, w.now
}

// late delivers a write that was sent earlier. It may expect a version that recurs, and replace a
// state that came after its send. The store cannot detect that. Members that know the replaced
// state must be safe from it.
func (s *store) late(sent time.Duration, prev driver.Version, r record.Record) (driver.Version, protocol.Outcome) {
	if sent >= s.placed || s.life.number == 0 || prev == "" || prev != s.cell.Version {
		return s.swap(prev, r)
	}
	s.w.tracef(nil, "a write that was sent at %v replaces another state", sent)
	if s.life.era == 0 || r.Released || sent >= s.life.from || s.w.plan.floorless {
		s.w.check.forgive(s.w.now + s.w.longest())
	}
	s.w.check.misled = s.w.now + s.w.longest()
	s.stray = true
	defer func() { s.stray = false }()
	return s.swap(prev, r)
}
