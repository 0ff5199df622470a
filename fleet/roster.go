package fleet

import (
	"maps"
	"slices"
	"time"
)

// roster decides which of the members with a seat count, so that elections are assigned to them. It
// knows only the seats and times that it is given. Every member has its own roster, and they may
// differ for a while.
//
// A member that vanishes stops counting at once, so that others take over its elections. A new
// member counts after a time in which no other came. So members that start together cause one round
// of hand-overs, and a member that comes and goes quickly causes none. To count, it must then renew
// its seat, because a crashed member still holds its seat for a while. A member that is cut off
// sees all others vanish. So a member that cannot renew its own seat, or has just lost it, keeps
// its last list until the leases of its elections may have expired.
type roster struct {
	settle   time.Duration // how long a new member waits until it counts
	presence time.Duration // the lease of a seat; a third of it passes between renewals
	memory   time.Duration // how long a vanished member is remembered, and the last list is kept

	held     map[int]*holder
	vanished map[string]time.Duration // when a holder that counted vanished
	own      ownSeat
	// everCounted: a member has counted before, so elections may have been assigned.
	everCounted bool
}

// holder is the member on a seat.
type holder struct {
	incarnation string // its incarnation
	since       time.Duration
	counts      bool
	// settled is the latest renewal of the seat when the wait for the new member was over, and
	// renewed reports that a later one was seen.
	settled time.Time
	renewed bool
}

// ownSeat is this member's own seat.
type ownSeat struct {
	seat     int // none: it has no seat
	since    time.Duration
	regained bool // it has lost a seat not long ago
}

// none is the number of no seat.
const none = -1

// gatherTime is how long to wait for members that start together, before the first assignment.
const gatherTime = time.Second

func newRoster(settle, presence, memory time.Duration) roster {
	return roster{
		settle: settle, presence: presence, memory: memory, held: map[int]*holder{}, vanished: map[string]time.Duration{}, own: ownSeat{seat: none},
	}
}

// see records the incarnation that holds a seat; it is empty if the seat is free.
func (r *roster) see(now time.Duration, seat int, who string) {
	p := r.held[seat]
	if p != nil && p.incarnation == who {
		return
	}
	if p != nil {
		if p.counts {
			r.vanished[p.incarnation] = now
		}
		delete(r.held, seat)
	}
	if who != "" {
		left, known := r.vanished[who]
		r.held[seat] = &holder{incarnation: who, since: now, counts: known && now-left < r.memory}
		delete(r.vanished, who)
	}
}

// sit records that this member has taken a seat, or has lost it.
func (r *roster) sit(now time.Duration, seat int) {
	if seat == r.own.seat {
		return
	}
	soon := now-r.own.since < r.memory
	r.own = ownSeat{seat: seat, since: now, regained: seat == none || r.own.regained && soon}
}

// review lets the members count that are due, and returns the seats of all that count, in order. It
// reports false while the last list is kept. If wait is not 0, call it again after that time. The
// time left of the lease of this member's own seat shows whether this member can reach the store.
// The function renewal returns a time that differs for each renewal of a seat.
func (r *roster) review(
	now, left time.Duration, renewal func(seat int) time.Time,
) (counted []int, wait time.Duration, ok bool) {
	maps.DeleteFunc(r.vanished, func(_ string, since time.Duration) bool { return now-since >= r.memory })
	if wait = r.keepListFor(now, left); wait > 0 {
		return nil, wait, false
	}
	wait = r.admit(now, renewal)
	for seat, p := range r.held {
		if p.counts {
			counted = append(counted, seat)
		}
	}
	slices.Sort(counted)
	r.everCounted = r.everCounted || len(counted) > 0
	return counted, wait, r.everCounted
}

// missing returns how much longer to wait for a member that counted and has vanished: a member that
// lost its seat may soon have one again.
func (r *roster) missing(now time.Duration) (wait time.Duration) {
	for _, since := range r.vanished {
		wait = max(wait, r.settle-(now-since))
	}
	return wait
}

// keepListFor returns how much longer this member keeps its last list: because its renewals fail,
// it has lost its seat, or it has a seat again and does not see the other members yet. If its
// renewals fail for long, it loses its seat.
func (r *roster) keepListFor(now, left time.Duration) time.Duration {
	switch {
	case r.own.seat == none && !r.own.regained:
		return 0
	case r.own.seat == none:
		return r.memory - (now - r.own.since)
	case left < r.presence/2:
		return r.presence / 8
	case !r.own.regained:
		return 0
	}
	return r.presence - (now - r.own.since)
}

// admit lets the new members count, once no other has come for a time and they have renewed their
// seats. A member that does not count itself has nothing to hand over, and must be ready when the
// others hand over its share. So it waits for a shorter time, and for no renewal.
func (r *roster) admit(now time.Duration, renewal func(seat int) time.Time) (wait time.Duration) {
	quiet, moves := r.settle, r.selfCounts()
	if !moves {
		quiet = min(gatherTime, r.settle)
	}
	due, waiting := r.due(quiet)
	if !waiting {
		return 0
	}
	if wait = due - now; wait > 0 {
		return wait
	}
	// a living member renews every third of its lease
	if moves && !r.renewals(renewal) && now-due < r.presence/2 {
		return r.presence / closely
	}
	for _, p := range r.held {
		if moves && !p.counts && !p.renewed {
			p.since, p.settled = now, time.Time{} // it has crashed, or cannot reach the store
			continue
		}
		p.counts = true
	}
	return 0
}

// closely is how often within the lease of a seat a renewal is checked for.
const closely = 8

// selfCounts reports whether this member counts itself, so that it may have elections to hand over.
func (r *roster) selfCounts() bool {
	self := r.held[r.own.seat]
	return self != nil && self.counts
}

// awaitsRenewal reports whether the holder of the seat must still renew before it counts.
func (r *roster) awaitsRenewal(seat int) bool {
	p := r.held[seat]
	return p != nil && !p.counts && r.selfCounts()
}

// due returns when the wait for the new members is over: when no member has come for the time
// quiet, but after twice that time at the latest.
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

// renewals checks for renewals of the new members since the wait was over, and reports whether all
// of them have renewed.
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
