// Package fleet lets one process take part in many elections, such as ten thousand, and spreads
// their leadership over its members. A member is one process with a [Fleet]. Use it for shards or
// queues that each need one owner; for a few elections a tenure.Group is enough.
//
//	f, err := fleet.New(store, "workers", fleet.Config{
//		Election:  tenure.Config{ID: "node-1", Lease: 30 * time.Second},
//		Elections: names,
//	})
//	...
//	err = f.Run(ctx, tenure.Lead(func(ctx context.Context, t *tenure.Term) error {
//		// This process leads t.Election() until ctx ends. Return when it does.
//	}))
//
// # Assignment
//
// Each member takes a seat. A seat is one more election, such as "workers/members/7", which its
// member leads. So every member sees all others: one that dies loses its seat, and one that ends
// gives it back. From the list of taken seats and the names of the elections, every member computes
// the same assignment. It assigns each member at most an equal share plus 5 %, or an equal share
// rounded up if this is more. Few elections change hands when a member comes or goes. The
// assignment is the Nominator of each election. The assigned member claims first. If it does not,
// another member claims after Config.Election.Nomination.Precedence. A leader that is no longer
// assigned finishes its work and hands over.
//
// # The cost of a wrong list
//
// A wrong list costs time, and no more: the lease of each election prevents two leaders, whatever
// the assignment says. Members that see different seats, or have different elections, disagree only
// about which member claims first. If an election is assigned to no member, or to an absent one,
// another member claims it after the Precedence. The default is 1 s on a store that pushes changes,
// and a lease on one that is polled. An assigned member that comes later asks for the election
// after campaigning for two leases.
//
// # Order
//
// A member that ends gives its seat back first, so that the others know the new assignment, and
// then hands over its elections. If a member crashes, the others notice it as soon as the lease of
// its seat is over. That lease is by default half as long as those of its elections. So when those
// leases end, the elections go straight to the members that will keep them. Elections are handed
// over to a new member only after [Config.Settle], so that brief arrivals and departures move
// nothing. Each member hands over at most [Config.HandOvers] elections at a time.
package fleet

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// Fleet is this process's part in many elections. It must be made by New. Its methods may be called
// concurrently.
type Fleet struct {
	name   string
	store  driver.Store
	cfg    Config
	full   tenure.Config // Election with all defaults
	own    uint64        // a number that no other member has
	seats  *seats
	busy   atomic.Bool
	wakeup chan struct{} // capacity 1: there may be something to do

	changing sync.Mutex // held while the elections are changed
	groups   [settingsKinds]*tenure.Group
	making   *entry // the election of this entry is being made

	mu         sync.Mutex
	entries    []*entry          // in the order of their names, which is the same for all members
	leaving    map[string]*entry // by name: SetElections has removed them, and their work may go on
	moves      moves
	roster     roster
	run        *session // nil while no Run is under way
	counted    []int    // the seats by which the elections are assigned
	keepsExtra bool     // this member keeps elections that are assigned to another for a while
	seat       int      // the seat of this member, or none
	led        int
	changed    chan struct{} // closed at the next change; nil without waiters
}

// New returns a member of the fleet of this name. It starts nothing and does not call the store. A
// *tenure.ConfigError lists the problems of the config. Those that tenure.New also finds in
// Config.Election are listed when there are no others, and those of Presence after that. Last, the
// error names the first election whose name the store cannot hold. If store is nil, the error
// reports only that.
func New(store driver.Store, name string, cfg Config) (*Fleet, error) {
	if store == nil {
		return nil, errors.New("fleet: the store is nil")
	}
	cfg, full := cfg.withDefaults(store)
	if err := invalid(name, cfg.validate(name)); err != nil {
		return nil, err
	}
	f := &Fleet{name: name, store: store, cfg: cfg, full: full, own: hashOf(full.ID), wakeup: make(chan struct{}, 1), seat: none, leaving: map[string]*entry{}}
	f.moves.fleet = f
	var err error
	for kind := range f.groups {
		if f.groups[kind], err = f.newGroup(f.settingsOf(kind), "Election.Lease"); err != nil {
			return nil, err
		}
	}
	if f.seats, err = newSeats(f); err != nil {
		return nil, err
	}
	entries, err := f.makeEntries(cfg.Elections)
	if err != nil {
		return nil, err
	}
	f.cfg.Elections = nil // the entries have the names
	f.insert(entries)
	return f, nil
}

// Run takes part in all elections and calls the handler whenever this process is elected in one of
// them; Term.Election names it. Run returns when ctx has ended and all work has stopped, or after
// an error as below.
//
// The handler is a function of type tenure.Lead, which runs in a goroutine until its context ends,
// or another tenure.Handler, which needs no goroutine while the work goes on. If work ends unasked,
// with any result, the fleet releases the election, and this member waits for
// Config.Election.Tuning.Backoff before it campaigns for it again. The context of the work also
// ends when the election is assigned to another member, with nomination.ErrWithdrawn. That is also
// the cause when Run's context has ended and there are other members, because a member that ends
// hands over its elections. To distinguish the two cases, the work checks Run's context.
//
// Run returns an error that wraps driver.ErrDenied if the store denies reading a seat and has never
// allowed it. One election can also end while the others go on: if reading its own record is denied
// in this way, or if the work calls runtime.Goexit. Run then returns when ctx ends or when all
// elections have ended. Its error wraps that of the first election that ended in this way. If there
// was none, Run returns nil once ctx has ended. It returns tenure.ErrRunning if another Run is
// under way.
func (f *Fleet) Run(ctx context.Context, work tenure.Handler) error {
	if !f.busy.CompareAndSwap(false, true) {
		return tenure.ErrRunning
	}
	defer f.busy.Store(false)
	s := f.begin(ctx, work)
	for over := false; !over && ctx.Err() == nil && s.ctx.Err() == nil; {
		var wait time.Duration
		if wait, over = f.round(s); !over {
			f.waitForWork(ctx, wait)
		}
	}
	return s.end()
}

// waitForWork waits until there may be something to do.
func (f *Fleet) waitForWork(ctx context.Context, wait time.Duration) {
	defer f.full.Clock.AfterFunc(wait, f.wake)()
	select {
	case <-f.wakeup:
	case <-ctx.Done():
	}
}

// wake makes the fleet check for work.
func (f *Fleet) wake() {
	select {
	case f.wakeup <- struct{}{}:
	default:
	}
}

// round does the work that is due, and returns how long to wait for more. It reports over when all
// elections have ended.
func (f *Fleet) round(s *session) (wait time.Duration, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.full.Clock.Now().Mono
	wait = earlier(f.review(s, now), s.start(now))
	return earlier(wait, s.checkEvery), s.over(now)
}

// review reassigns the elections if the members have changed, and returns how long to wait for the
// next review.
func (f *Fleet) review(s *session, now time.Duration) time.Duration {
	counted, wait, ok := f.roster.review(now, f.seats.remaining(), f.seats.renewal)
	f.seats.setAwaited(f.roster.awaitsRenewal)
	if !ok {
		if now-s.since >= f.full.Lease {
			s.knowAssignment() // no other member is known, so the first to claim leads
		}
		return wait
	}
	s.knowAssignment()
	seat, missing := f.roster.own.seat, f.roster.missing(now)
	if seat != f.seat || !slices.Equal(counted, f.counted) || f.keepsExtra && missing <= 0 {
		f.assign(counted, seat, missing > 0)
	}
	if f.keepsExtra {
		wait = earlier(wait, missing)
	}
	return wait
}

// earlier returns the shorter of two waits; 0 means no wait is needed.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// assign assigns the elections to the seats, and sets for each entry whether it is assigned to this
// member. If keep, this member keeps all elections that it leads: a member that has vanished may
// come back soon, and hand-overs can wait for that.
func (f *Fleet) assign(counted []int, seat int, keep bool) {
	f.counted, f.seat, f.keepsExtra = counted, seat, false
	hashes := make([]uint64, len(f.entries))
	for i, e := range f.entries {
		hashes[i] = e.hash
	}
	for i, at := range assign(hashes, counted) {
		e, me := f.entries[i], at >= 0 && counted[at] == seat
		if !me && keep && e.isLed && e.isNominee {
			f.keepsExtra = true
			continue
		}
		e.setAssigned(me)
	}
	f.notifyChanged()
}

// onSeatChange is called when the holder of a seat has changed.
func (f *Fleet) onSeatChange(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.roster.see(f.full.Clock.Now().Mono, number, f.seats.holder(number).Incarnation)
	f.notifyChanged()
	f.wake()
}

// onOwnSeat is called with the seat that this member has, or none.
func (f *Fleet) onOwnSeat(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.roster.sit(f.full.Clock.Now().Mono, number)
	f.notifyChanged()
	f.wake()
}

// Member is a member of a fleet that holds a seat.
type Member struct {
	// Seat is the number of the seat, from 0.
	Seat int
	// Leader has the ID, Address and Metadata of its Config.Election.
	tenure.Leader
	// Counts is false while the member is new: no elections are assigned to it yet.
	Counts bool
	// Self is true for this process.
	Self bool
}

// Status is a snapshot of a fleet, as this member knows it. The member has settled when Led equals
// Assigned and Moving is 0. A member that is cut off may show its last assignment for a while; when
// it has lost its seat, no Member is Self.
type Status struct {
	// Members are the holders of seats, as far as this member knows, in the order of seats. None
	// while no Run is under way; on a new store, none for up to Presence after the start.
	Members []Member
	// Elections is the number of elections.
	Elections int
	// Assigned is how many of them are assigned to this member.
	Assigned int
	// Led is how many elections this member leads. One that SetElections removed counts until its
	// work has stopped.
	Led int
	// Moving is how many elections this member is handing over, or still has to.
	Moving int
}

// Watch yields the present status, and then the status after each change, until ctx ends or the
// loop is left. A slow loop sees the latest status, not every one.
func (f *Fleet) Watch(ctx context.Context) iter.Seq[Status] {
	return func(yield func(Status) bool) {
		for {
			changed := f.nextChange()
			if !yield(f.Status()) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// nextChange returns a channel that is closed at the next change of Status.
func (f *Fleet) nextChange() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.changed
}

// Status returns a snapshot. It does not call the store.
func (f *Fleet) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Elections: len(f.entries), Led: f.led, Moving: f.moves.remaining()}
	for _, e := range f.entries {
		if e.assigned {
			s.Assigned++
		}
	}
	for n := range f.cfg.Members {
		if l := f.seats.holder(n); l.Exists() {
			s.Members = append(s.Members, Member{
				Seat: n, Leader: l, Counts: slices.Contains(f.counted, n), Self: n == f.roster.own.seat,
			})
		}
	}
	return s
}

// notifyChanged closes the channel of nextChange. It runs under the lock.
func (f *Fleet) notifyChanged() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// Led returns the sorted names of the elections that this member leads: the handler's Elected was
// called for them, and the work has not stopped. It leaves out those that SetElections removed.
func (f *Fleet) Led() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, e := range f.entries {
		if e.isLed {
			names = append(names, e.election.Name())
		}
	}
	return names
}
