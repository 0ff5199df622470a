package fleet

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/nomination"
)

// seats are additional elections. Each member leads one of them for as long as it takes part, so
// that all members see each other. A seat has a lease, so a member that dies loses it. A member
// that ends releases its seat, which all members see at once.
type seats struct {
	all     []*seat
	own     uint64 // a number that no other member has
	changed chan struct{}
	// onChange is called at each change of a seat, with the incarnation of its holder, and
	// onOwnSeat with the seat of this member, or none.
	onChange  func(number int, who string)
	onOwnSeat func(number int)
	onError   func(error)

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
	status         tenure.Status
	renewalAwaited bool // see awaitsRenewal
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

// freeSeatLease is the lease in the settings for a free seat, if it is longer than Presence. If the
// store pushes changes, such a seat is then read only every few minutes.
const freeSeatLease = 10 * time.Minute

func newSeats(f *Fleet) (*seats, error) {
	s := &seats{own: f.own, onChange: f.onSeatChange, onOwnSeat: f.onOwnSeat, changed: make(chan struct{}, 1), target: none, lastTarget: none}
	presence := f.cfg.Presence
	closer := f.cfg.seat(presence, presence/closely)
	closer.Tuning.PollStable = closer.Tuning.Poll
	s.configs = [...]tenure.Config{
		paceHeld: f.cfg.seat(presence, presence), paceAwaited: closer,
		paceGather: f.cfg.seat(presence, gatherTime/4), paceFree: f.cfg.seat(max(presence, freeSeatLease), presence),
	}
	for n := range f.cfg.Members {
		e, err := tenure.New(f.store, seatPrefix(f.name)+strconv.Itoa(n), s.configs[paceGather])
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

// follow observes all seats until the context ends.
func (s *seats) follow(ctx context.Context) {
	var all sync.WaitGroup
	for n, one := range s.all {
		all.Go(func() {
			_, err := one.election.Wait(ctx, func(st tenure.Status) bool {
				s.see(n, st)
				return false
			})
			if ctx.Err() == nil {
				s.onError(err)
			}
		})
	}
	all.Wait()
}

// see records the status of a seat. If a read of another member's seat failed, its last leader is
// kept.
func (s *seats) see(n int, st tenure.Status) {
	s.mu.Lock()
	one := s.all[n]
	if st.Failures > 0 && !st.Leader.Exists() && n != s.lastTarget {
		st.Leader = one.status.Leader
	}
	one.status = st
	s.adjustPace(n)
	if n == s.target && st.Leader.Exists() && !leads(st) {
		s.stopCampaign() // another member has the seat
	}
	s.mu.Unlock()
	s.onChange(n, st.Leader.Incarnation)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func leads(st tenure.Status) bool {
	return st.State == tenure.StateLeader || st.State == tenure.StateLeaving
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

// setSettled sets whether it is known which members were there first.
func (s *seats) setSettled(known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known != s.settled {
		s.settled = known
		for n := range s.all {
			s.adjustPace(n)
		}
	}
}

// setAwaited sets for which seats a renewal is awaited.
func (s *seats) setAwaited(awaited func(n int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, one := range s.all {
		if now := awaited(n); now != one.renewalAwaited {
			one.renewalAwaited = now
			s.adjustPace(n)
		}
	}
}

// renewal returns the time of the latest renewal of a seat that was seen, by its holder's clock.
func (s *seats) renewal(n int) time.Time {
	st := s.all[n].election.Status()
	return st.Record.Updated
}

// holdSeat holds a seat for this member until the context ends, and releases it then. If the seat
// is lost, it takes one again.
func (s *seats) holdSeat(ctx context.Context) {
	for ctx.Err() == nil {
		n, ok := s.choose()
		if !ok {
			select {
			case <-s.changed:
			case <-ctx.Done():
			}
			continue
		}
		if term := s.campaign(ctx, n); term != nil {
			s.hold(ctx, n, term)
		}
	}
}

// hold holds a seat until the context ends or the seat is lost.
func (s *seats) hold(ctx context.Context, n int, term *tenure.Term) {
	s.mu.Lock()
	s.term = term
	s.mu.Unlock()
	s.onOwnSeat(n)
	select {
	case <-ctx.Done():
	case <-term.Context().Done(): // lost, or another member has asked for it
	}
	s.onOwnSeat(none)
	_ = term.Resign(context.WithoutCancel(ctx)) // Resign bounds its own time
	st := s.all[n].election.Status()
	s.see(n, st) // the seat is free, and this member prefers it next time
	s.setTarget(n, false, nil)
}

// remaining returns the time left of the lease of this member's seat.
func (s *seats) remaining() time.Duration {
	s.mu.Lock()
	term := s.term
	s.mu.Unlock()
	if term == nil {
		return 0
	}
	return term.Remaining()
}

// campaign campaigns for a seat until this member has it, or another.
func (s *seats) campaign(ctx context.Context, n int) *tenure.Term {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !s.setTarget(n, true, cancel) {
		return nil
	}
	term, err := s.all[n].election.Campaign(ctx)
	if err != nil {
		s.setTarget(n, false, nil)
		return nil
	}
	return term
}

// setTarget sets whether this member campaigns for a seat. It reports false if the seat is held.
func (s *seats) setTarget(n int, yes bool, giveUp context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if yes && s.all[n].status.Leader.Exists() {
		return false
	}
	s.target = none
	if yes {
		s.target, s.stopCampaign, s.lastTarget = n, giveUp, n
	}
	s.adjustPace(n)
	return true
}

// choose picks a free seat: the last one of this member, or one that was released, which is free at
// once, or any other. Members prefer different seats, so that they rarely pick the same one. It
// reports false before all seats are known, or if no seat is free.
func (s *seats) choose() (number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number = none
	var best uint64
	for n, one := range s.all {
		if !one.status.Known {
			return none, false
		}
		if one.status.Leader.Exists() {
			continue
		}
		if w := s.preference(n); number == none || w > best {
			number, best = n, w
		}
	}
	return number, number != none
}

// preference orders the free seats: the highest is picked.
func (s *seats) preference(n int) uint64 {
	const had, ready = 1 << 63, 1 << 62
	w := weight(s.own, n) >> 2
	if n == s.lastTarget {
		w |= had
	}
	if s.all[n].status.Record.Kind == admin.Released {
		w |= ready
	}
	return w
}

// holders returns the members that hold seats, by the number of the seat.
func (s *seats) holders() map[int]tenure.Leader {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[int]tenure.Leader{}
	for n, one := range s.all {
		if one.status.Leader.Exists() {
			all[n] = one.status.Leader
		}
	}
	return all
}
