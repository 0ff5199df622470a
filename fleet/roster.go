package fleet

import (
	"maps"
	"slices"
	"time"
)

// roster decides which of the members that hold a seat count. It knows only the sights and times
// that it is given. Every member has one of its own, and they may differ for a while.
//
// A member that vanishes no longer counts at once: others take over its elections. A member that
// comes counts after a while in which no other came, so that many that start together move
// elections once, and one that comes and goes quickly moves none. To count, it must then be seen to
// renew its seat: after a crash it still holds the seat. A member that is cut off sees all others
// vanish. So a member that cannot renew its own seat, or has just lost it, keeps its last list for
// as long as its elections' leases may last.
type roster struct {
	settle   time.Duration // how long a new member is waited for
	presence time.Duration // the lease of a seat; a third of it passes between renewals
	memory   time.Duration // how long a vanished member is remembered, and the last list is kept

	held map[int]*holder
	gone map[string]time.Duration // when a holder that counted vanished
	own  ownSeat
	// begun: a member has counted, so there is something that may be moved.
	begun bool
}

// holder is the member on a seat.
type holder struct {
	who    string // its incarnation
	since  time.Duration
	counts bool
	// settled is the renewal of its seat that was the latest when it had been there for long
	// enough, and renewed says that another was seen since.
	settled time.Time
	renewed bool
}

// ownSeat is this member's own seat.
type ownSeat struct {
	seat  int // none: it has no seat
	since time.Duration
	again bool // it had one, until a short while ago
}

// none is where there is no seat.
const none = -1

// gather is how long members that start together are waited for, where nobody leads yet.
const gather = time.Second

func newRoster(settle, presence, memory time.Duration) roster {
	return roster{
		settle: settle, presence: presence, memory: memory, held: map[int]*holder{}, gone: map[string]time.Duration{}, own: ownSeat{seat: none},
	}
}

// see takes the incarnation on a seat; the empty one is none.
func (r *roster) see(now time.Duration, seat int, who string) {
	p := r.held[seat]
	if p != nil && p.who == who {
		return
	}
	if p != nil {
		if p.counts {
			r.gone[p.who] = now
		}
		delete(r.held, seat)
	}
	if who != "" {
		left, known := r.gone[who]
		r.held[seat] = &holder{who: who, since: now, counts: known && now-left < r.memory}
		delete(r.gone, who)
	}
}

// sit says that this member has taken a seat, or has none any more.
func (r *roster) sit(now time.Duration, seat int) {
	if seat == r.own.seat {
		return
	}
	soon := now-r.own.since < r.memory
	r.own = ownSeat{seat: seat, since: now, again: seat == none || r.own.again && soon}
}

// review lets those members count that are due, and returns the seats that do, in order. It reports
// false while the last list is kept. Something may change after the wait, if that is not 0. The
// time left of the lease of this member's own seat shows how well it hears. Renewal returns a time
// in the latest renewal of a seat that was seen, another one in each.
func (r *roster) review(
	now, left time.Duration, renewal func(seat int) time.Time,
) (counted []int, wait time.Duration, ok bool) {
	maps.DeleteFunc(r.gone, func(_ string, since time.Duration) bool { return now-since >= r.memory })
	if wait = r.unsure(now, left); wait > 0 {
		return nil, wait, false
	}
	wait = r.admit(now, renewal)
	for seat, p := range r.held {
		if p.counts {
			counted = append(counted, seat)
		}
	}
	slices.Sort(counted)
	r.begun = r.begun || len(counted) > 0
	return counted, wait, r.begun
}

// missing is how much longer a member that counted is waited for: a member that handed over its
// seat takes it again in a moment.
func (r *roster) missing(now time.Duration) (wait time.Duration) {
	for _, since := range r.gone {
		wait = max(wait, r.settle-(now-since))
	}
	return wait
}

// unsure is how much longer this member keeps its last list: it hears badly, has lost its seat, or
// has it back and does not yet see the other members. A member that hears badly for long loses its
// seat.
func (r *roster) unsure(now, left time.Duration) time.Duration {
	switch {
	case r.own.seat == none && !r.own.again:
		return 0
	case r.own.seat == none:
		return r.memory - (now - r.own.since)
	case left < r.presence/2:
		return r.presence / 8
	case !r.own.again:
		return 0
	}
	return r.presence - (now - r.own.since)
}

// admit lets the awaited members count, once no other has come for a while and they were seen to
// renew their seats. A member that does not count itself has nothing to move, and must be ready
// when the others give it its share, so it waits less, and for no renewal.
func (r *roster) admit(now time.Duration, renewal func(seat int) time.Time) (wait time.Duration) {
	quiet, moves := r.settle, r.moves()
	if !moves {
		quiet = min(gather, r.settle)
	}
	due, waiting := r.due(quiet)
	if !waiting {
		return 0
	}
	if wait = due - now; wait > 0 {
		return wait
	}
	// a member that lives renews each third
	if moves && !r.renewals(renewal) && now-due < r.presence/2 {
		return r.presence / closely
	}
	for _, p := range r.held {
		if moves && !p.counts && !p.renewed {
			p.since, p.settled = now, time.Time{} // it has crashed, or hears badly
			continue
		}
		p.counts = true
	}
	return 0
}

// closely is how many times in the lease of a seat its renewal is looked for.
const closely = 8

// moves reports whether this member may have something to move, because it counts itself.
func (r *roster) moves() bool {
	self := r.held[r.own.seat]
	return self != nil && self.counts
}

// awaits reports whether a renewal of the seat is waited for.
func (r *roster) awaits(seat int) bool {
	p := r.held[seat]
	return p != nil && !p.counts && r.moves()
}

// due is when the awaited members have been there for long enough: when no member has come for a
// while, but not later than after twice that time.
func (r *roster) due(quiet time.Duration) (at time.Duration, waiting bool) {
	var first, last time.Duration
	for _, p := range r.held {
		if !p.counts {
			if !waiting {
				first, last, waiting = p.since, p.since, true
			}
			first, last = min(first, p.since), max(last, p.since)
		}
	}
	return min(last+quiet, first+2*quiet), waiting
}

// renewals looks for renewals of the awaited members since they were there for long enough, and
// reports whether all of them have renewed.
func (r *roster) renewals(renewal func(seat int) time.Time) (all bool) {
	all = true
	for seat, p := range r.held {
		if p.counts {
			continue
		}
		at := renewal(seat)
		if p.settled.IsZero() {
			p.settled = at
		}
		p.renewed = p.renewed || !at.Equal(p.settled)
		all = all && p.renewed
	}
	return all
}
