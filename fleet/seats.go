package fleet

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/nomination"
)

// seats are additional elections. Each member leads one of them for as long as it takes part, so
// that all members see each other. A seat has a lease, so a member that dies loses it. A member
// that ends releases its seat, which all members see at once.
type seats struct {
	fleet   *Fleet
	group   *tenure.Group
	all     []*seat
	changed chan struct{}

	configs [4]tenure.Config // by pace

	mu           sync.Mutex
	target       int // the seat that this member campaigns for or holds; none
	stopCampaign context.CancelFunc
	lastTarget   int          // the last target, also after it was lost
	settled      bool         // it is known which members were there first
	term         *tenure.Term // of the last seat of this member; nil before the first
}

// seat is one seat. Its fields but the election are under the lock of seats.
type seat struct {
	election       *tenure.Election
	pace           pace
	status         tenure.Status // of this Run
	renewalAwaited bool          // see awaitsRenewal
}

// pace is how often the status of a seat is read.
type pace int

const (
	paceHeld    pace = iota // while a member holds it, or this one campaigns for it
	paceAwaited             // while a renewal is awaited
	paceGather              // while members that start together find each other
	paceFree                // while it is free
)

// seatPrefix is how the names of a fleet's seats begin. The slash is allowed in the keys of all
// stores.
func seatPrefix(fleet string) string { return fleet + "/members/" }

// freeSeatLease is the lease in the settings for a free seat, if it is longer than Presence and the
// store allows it. If the store pushes changes, such a seat is then read only every few minutes.
const freeSeatLease = 10 * time.Minute

func newSeats(f *Fleet) (s *seats, err error) {
	s = &seats{fleet: f, changed: make(chan struct{}, 1), target: none, lastTarget: none}
	presence := f.cfg.Presence
	free := max(presence, min(freeSeatLease, driver.AbilitiesOf(f.store).MaxLease()))
	closer := f.cfg.seat(presence, presence/closely)
	closer.Tuning.PollStable = closer.Tuning.Poll
	s.configs = [...]tenure.Config{
		paceHeld: f.cfg.seat(presence, presence), paceAwaited: closer,
		paceGather: f.cfg.seat(presence, gatherTime/4), paceFree: f.cfg.seat(free, presence),
	}
	if s.group, err = f.newGroup(s.configs[paceGather], "Presence"); err != nil {
		return nil, err
	}
	for n := range f.cfg.Members {
		e, err := s.group.Election(seatPrefix(f.name) + strconv.Itoa(n))
		if err != nil {
			return nil, err
		}
		s.all = append(s.all, &seat{election: e, pace: paceGather})
	}
	return s, nil
}

// seat returns the settings for a seat. OnEvent receives its alarms, because an operator has to fix
// a seat like any election.
func (c *Config) seat(lease, poll time.Duration) tenure.Config {
	e := c.Election
	alarm := e.OnEvent
	e.Lease, e.Tuning.Poll, e.Tuning.PollStable, e.Tuning.Renew, e.Tuning.Retry = lease, min(poll, c.Presence), c.Presence, 0, nil
	e.Tuning.Grace, e.Tuning.Splay, e.StopWithin, e.Nomination = 0, 0, 0, nomination.Config{}
	e.OnEvent, e.Metrics = nil, nil
	if alarm != nil {
		e.OnEvent = func(x tenure.Event) {
			if x.Kind == tenure.EventAlarm {
				alarm(x)
			}
		}
	}
	return e
}

// follow observes all seats until the context ends or one of them cannot be read.
func (s *seats) follow(ctx context.Context) error {
	for st, err := range s.group.Watch(ctx) {
		if err != nil {
			return err
		}
		n, _ := strconv.Atoi(strings.TrimPrefix(st.Election, seatPrefix(s.fleet.name)))
		s.see(n)
	}
	return nil
}

// see records the present status of a seat. If a read of another member's seat failed, its last
// leader is kept.
func (s *seats) see(n int) {
	s.mu.Lock()
	one := s.all[n]
	st, last := one.election.Status(), one.status.Leader
	if st.Failures > 0 && !st.Leader.Exists() && n != s.lastTarget {
		st.Leader = last
	}
	one.status = st
	s.adjustPace(n)
	if n == s.target && st.Leader.Exists() && st.Term == 0 {
		s.stopCampaign() // another member has the seat
	}
	s.mu.Unlock()
	if !st.Leader.Equal(last) {
		s.fleet.onSeatChange(n)
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// adjustPace sets how often a seat is read. It runs under the lock.
func (s *seats) adjustPace(n int) {
	one := s.all[n]
	how := paceFree
	switch {
	case one.renewalAwaited:
		how = paceAwaited
	case n == s.target || one.status.Leader.Exists():
		how = paceHeld
	case !s.settled || !one.status.Known:
		how = paceGather
	}
	if how != one.pace {
		one.pace = how
		// it cannot fail: New has accepted the shortest intervals
		_ = one.election.Reconfigure(func(c *tenure.Config) { *c = s.configs[how] })
	}
}

// update makes a change under the lock, and then sets how often each seat is read.
func (s *seats) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	for n := range s.all {
		s.adjustPace(n)
	}
}

// reset forgets all that this Run has seen.
func (s *seats) reset() {
	s.update(func() {
		s.settled = false
		for _, one := range s.all {
			one.status, one.renewalAwaited = tenure.Status{}, false
		}
	})
}

// settle notes that it is known which members were there first.
func (s *seats) settle() {
	s.update(func() { s.settled = true })
}

// setAwaited sets for which seats a renewal is awaited.
func (s *seats) setAwaited(awaited func(n int) bool) {
	s.update(func() {
		for n, one := range s.all {
			one.renewalAwaited = awaited(n)
		}
	})
}

// renewal returns the time of the latest renewal of a seat that was seen, by its holder's clock.
func (s *seats) renewal(n int) time.Time { return s.all[n].election.Status().Record.Updated }

// holdSeat holds a seat for this member until the context ends, and releases it then. If the seat
// is lost, it takes one again.
func (s *seats) holdSeat(ctx context.Context) {
	for ctx.Err() == nil {
		campaign, giveUp := context.WithCancel(ctx)
		if n := s.choose(giveUp); n != none {
			s.hold(ctx, campaign, n)
		} else {
			select {
			case <-s.changed:
			case <-ctx.Done():
			}
		}
		giveUp()
	}
}

// hold campaigns for a seat until this member has it, or another. It holds the seat until ctx ends
// or the seat is lost.
func (s *seats) hold(ctx, campaign context.Context, n int) {
	defer s.dropTarget()
	term, err := s.all[n].election.Campaign(campaign)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.term = term
	s.mu.Unlock()
	s.fleet.onOwnSeat(n)
	select {
	case <-ctx.Done():
	case <-term.Context().Done(): // lost, or another member has asked for it
	}
	s.fleet.onOwnSeat(none)
	// Resign bounds its own time. Then the seat is free, and this member prefers it next time.
	_ = term.Resign(context.WithoutCancel(ctx))
	s.see(n)
}

func (s *seats) dropTarget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.target
	s.target = none
	s.adjustPace(n)
}

// remaining returns the time left of the lease of this member's seat.
func (s *seats) remaining() time.Duration {
	s.mu.Lock()
	term := s.term
	s.mu.Unlock()
	return term.Remaining()
}

// choose picks a free seat as the target: the last one of this member, or one that was released,
// which is free at once, or any other. Members prefer different seats, so that they rarely pick the
// same one. It picks none before all seats are known, or if no seat is free. It calls giveUp when
// another member has the seat.
func (s *seats) choose(giveUp context.CancelFunc) (number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number = none
	var best uint64
	for n, one := range s.all {
		if !one.status.Known {
			return none
		}
		if one.status.Leader.Exists() {
			continue
		}
		if w := s.preference(n); number == none || w > best {
			number, best = n, w
		}
	}
	if number != none {
		s.target, s.stopCampaign, s.lastTarget = number, giveUp, number
		s.adjustPace(number)
	}
	return number
}

// preference orders the free seats: the highest is picked.
func (s *seats) preference(n int) uint64 {
	const had, ready = 1 << 63, 1 << 62
	w := weight(s.fleet.own, n) >> 2
	if n == s.lastTarget {
		w |= had
	}
	if s.all[n].status.Record.Kind == admin.Released {
		w |= ready
	}
	return w
}

// holder returns the member that holds a seat.
func (s *seats) holder(n int) tenure.Leader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[n].status.Leader
}
