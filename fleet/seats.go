package fleet

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
)

// seats are elections beside those of the fleet: each member leads one of them for as long as it
// takes part, so that all see the others. A seat has a lease, so a member that dies loses it; one
// that ends releases it, and all know at once.
type seats struct {
	all  []*seat
	own  uint64 // a number that no other member has
	told chan struct{}
	// seen is called at each change of a seat, with the incarnation of its holder, and sitsOn with
	// the seat of this member, or none.
	seen   func(number int, who string)
	sitsOn func(number int)
	fail   func(error)

	configs [4]tenure.Config // by how closely a seat is followed

	mu      sync.Mutex
	wanted  int // the seat that is campaigned for or held; none
	giveUp  context.CancelFunc
	last    int          // the seat that was wanted last
	settled bool         // it is known which members were there first
	term    *tenure.Term // of the seat that is held, or was last; nil before the first
}

// seat is one of them. Its fields but the election are under the lock of all.
type seat struct {
	election *tenure.Election
	how      closeness
	status   tenure.Status
	awaited  bool // a renewal of it is waited for
}

// closeness is how a seat is followed.
type closeness int

const (
	near    closeness = iota // while it is held, by any member, or wanted
	awaited                  // while a renewal is waited for
	eager                    // while members that start together find each other
	far                      // while it is free
)

// seatPrefix is how the names of a fleet's seats begin. The slash is allowed in the keys of all
// stores.
func seatPrefix(fleet string) string { return fleet + "/members/" }

// seldom is the lease by which a free seat is followed where it is longer than Presence. On a store
// that does not push changes it means a read every few minutes, and otherwise a tenth of that.
const seldom = 10 * time.Minute

func newSeats(f *Fleet) (*seats, error) {
	s := &seats{own: f.own, seen: f.seen, sitsOn: f.sitsOn, told: make(chan struct{}, 1), wanted: none, last: none}
	presence := f.cfg.Presence
	closer := f.cfg.seat(presence, presence/closely)
	closer.Tuning.PollStable = closer.Tuning.Poll
	s.configs = [...]tenure.Config{
		near: f.cfg.seat(presence, presence), awaited: closer,
		eager: f.cfg.seat(presence, gather/4), far: f.cfg.seat(max(presence, seldom), presence),
	}
	for n := range f.cfg.Members {
		e, err := tenure.New(f.store, seatPrefix(f.name)+strconv.Itoa(n), s.configs[eager])
		if err != nil {
			return nil, err
		}
		s.all = append(s.all, &seat{election: e, how: eager})
	}
	return s, nil
}

// seat returns the settings for a seat. Alarms go to the user, because a person has to look at a
// seat as at any election.
func (c *Config) seat(lease, poll time.Duration) tenure.Config {
	e := c.Election
	alarm := e.OnEvent
	e.Lease, e.Tuning.Poll, e.Tuning.PollStable, e.Tuning.Renew, e.Tuning.Retry = lease, min(poll, c.Presence), c.Presence, 0, nil
	e.Tuning.Grace, e.Tuning.Splay, e.StopWithin, e.Nominator, e.Priority, e.NomineeOnly = 0, 0, 0, nil, 0, false
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
				s.fail(err)
			}
		})
	}
	all.Wait()
}

// see takes the status of a seat. If reading another member's seat failed, its last leader is kept.
func (s *seats) see(n int, st tenure.Status) {
	s.mu.Lock()
	one := s.all[n]
	if st.Failures > 0 && !st.Leader.Exists() && n != s.last {
		st.Leader = one.status.Leader
	}
	one.status = st
	s.adjustPace(n)
	if n == s.wanted && st.Leader.Exists() && !leads(st) {
		s.giveUp() // another was faster
	}
	s.mu.Unlock()
	s.seen(n, st.Leader.Incarnation)
	select {
	case s.told <- struct{}{}:
	default:
	}
}

func leads(st tenure.Status) bool {
	return st.State == tenure.StateLeader || st.State == tenure.StateLeaving
}

// adjustPace has a seat followed as closely as there is need. It runs under the lock.
func (s *seats) adjustPace(n int) {
	one := s.all[n]
	how := far
	switch {
	case one.awaited:
		how = awaited
	case n == s.wanted || one.status.Leader.Exists():
		how = near
	case !s.settled || !one.status.Known:
		how = eager
	}
	if how != one.how {
		one.how = how
		// New has accepted the shortest intervals of all
		_ = one.election.Reconfigure(func(c *tenure.Config) { *c = s.configs[how] })
	}
}

// settle sets whether it is known which members were there first.
func (s *seats) settle(known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known != s.settled {
		s.settled = known
		for n := range s.all {
			s.adjustPace(n)
		}
	}
}

// await follows the seats closely whose renewals are waited for.
func (s *seats) await(awaited func(n int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, one := range s.all {
		if now := awaited(n); now != one.awaited {
			one.awaited = now
			s.adjustPace(n)
		}
	}
}

// renewal is a time in the latest renewal of a seat that was seen, by its holder's clock.
func (s *seats) renewal(n int) time.Time {
	st := s.all[n].election.Status()
	return st.Record.Updated
}

// keep holds a seat for this member until the context ends, and releases it then. After a loss it
// takes one again.
func (s *seats) keep(ctx context.Context) {
	for ctx.Err() == nil {
		n, ok := s.choose()
		if !ok {
			select {
			case <-s.told:
			case <-ctx.Done():
			}
			continue
		}
		if term := s.take(ctx, n); term != nil {
			s.sit(ctx, n, term)
		}
	}
}

// sit holds a seat.
func (s *seats) sit(ctx context.Context, n int, term *tenure.Term) {
	s.mu.Lock()
	s.term = term
	s.mu.Unlock()
	s.sitsOn(n)
	select {
	case <-ctx.Done():
	case <-term.Soft().Done(): // lost, or another member has asked for it
	}
	s.sitsOn(none)
	_ = term.Resign(context.WithoutCancel(ctx)) // bounded by itself
	st := s.all[n].election.Status()
	s.see(n, st) // it is free, and the one to take again
	s.setWanted(n, false, nil)
}

// left is the time left of the lease of this member's seat.
func (s *seats) left() time.Duration {
	s.mu.Lock()
	term := s.term
	s.mu.Unlock()
	if term == nil {
		return 0
	}
	return term.Remaining()
}

// take campaigns for a seat until another has it.
func (s *seats) take(ctx context.Context, n int) *tenure.Term {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !s.setWanted(n, true, cancel) {
		return nil
	}
	term, err := s.all[n].election.Campaign(ctx)
	if err != nil {
		s.setWanted(n, false, nil)
		return nil
	}
	return term
}

// setWanted sets whether this member campaigns for a seat. It reports false if the seat is held.
func (s *seats) setWanted(n int, yes bool, giveUp context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if yes && s.all[n].status.Leader.Exists() {
		return false
	}
	s.wanted = none
	if yes {
		s.wanted, s.giveUp, s.last = n, giveUp, n
	}
	s.adjustPace(n)
	return true
}

// choose picks a free seat: the one that this member had, or one that was released, which can be
// had at once, or any. Of several it is one that others hardly pick in the same moment. It reports
// false before all seats are known, or if there is none.
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
		if w := s.liking(n); number == none || w > best {
			number, best = n, w
		}
	}
	return number, number != none
}

// liking orders the free seats.
func (s *seats) liking(n int) uint64 {
	const had, ready = 1 << 63, 1 << 62
	w := weight(s.own, n) >> 2
	if n == s.last {
		w |= had
	}
	if s.all[n].status.Record.Kind == admin.Released {
		w |= ready
	}
	return w
}

// holders are the members on the seats now, by number.
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
