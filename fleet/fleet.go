package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
)

// Fleet is this process's part in many elections. It must be made by New. Its methods may be called
// concurrently.
type Fleet struct {
	name  string
	store driver.Store
	cfg   Config
	clock clock.Clock
	own   uint64 // a number that no other member has
	seats *seats // nil without Spread
	busy  atomic.Bool
	stir  chan struct{} // capacity 1: there may be something to do

	changing sync.Mutex // held while the elections are changed
	kinds    [kinds]*tenure.Group

	mu      sync.Mutex
	entries []*entry          // in the order of their names, which is the same for all members
	left    map[string]*entry // not the fleet's any more, and not ended, by name
	moves   moves
	roster  roster
	run     *session // nil while no Run is under way
	counted []int    // the seats by which the elections are assigned
	uneven  bool     // this member leads elections of another for a while
	seat    int      // this member's among them, or none
	led     int
	changed chan struct{} // closed at the next change; nil without waiters
}

// New returns a member of the fleet of this name. It starts nothing and does not call the store.
// Its error lists the problems of the config, each as a *tenure.ConfigError. Those of
// Config.Election show once the other fields are valid; of several invalid elections the error
// names the first.
func New(store driver.Store, name string, cfg Config) (*Fleet, error) {
	if store == nil {
		return nil, errors.New("fleet: the store is nil")
	}
	cfg = cfg.withDefaults(store)
	if err := cfg.validate(name); err != nil {
		return nil, fmt.Errorf("fleet: %q: %w", name, err)
	}
	f := &Fleet{name: name, store: store, cfg: cfg, clock: cfg.Election.Clock, stir: make(chan struct{}, 1), seat: none, left: map[string]*entry{}}
	f.moves.fleet = f
	if f.clock == nil {
		f.clock = clock.System{}
	}
	if err := f.identify(); err != nil {
		return nil, err
	}
	if err := f.makeGroups(); err != nil {
		return nil, err
	}
	if err := f.makeSeats(); err != nil {
		return nil, err
	}
	entries, err := f.makeEntries(cfg.Elections)
	if err != nil {
		return nil, err
	}
	f.cfg.Elections = nil // the entries know
	f.insert(entries)
	return f, nil
}

// identify sets the number that identifies this member. Its ID may be tenure's default, which an
// election knows.
func (f *Fleet) identify() error {
	e, err := tenure.New(f.store, seatPrefix(f.name)+"0", f.cfg.seat(f.cfg.Presence, f.cfg.Presence))
	if err == nil {
		f.own = hashOf(e.ID())
	}
	return err
}

// makeGroups makes a group of each kind of settings.
func (f *Fleet) makeGroups() (err error) {
	for kind := range f.kinds {
		if f.kinds[kind], err = tenure.NewGroup(f.store, f.cfg.kind(kind, f.own)); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) makeSeats() (err error) {
	if f.cfg.Spread {
		f.seats, err = newSeats(f)
	}
	return err
}

// Run takes part in all elections and calls the handler whenever this process is elected in one of
// them; Term.Election names it. Run returns when ctx has ended and all work has stopped, or after
// an error as below.
//
// The work is a function, tenure.Lead(f), which runs in a goroutine until its context ends, or a
// type with methods Elected and Stop, which needs no goroutine while the work goes on. If work ends
// unasked, with any result, the fleet releases the election, and this member waits for
// Config.Election.Tuning.Backoff before it campaigns for it again. The soft context also ends when
// the election is assigned to another member, with tenure.ErrNominationLost. With Spread, that is
// also the cause when Run's context has ended and there are other members, because a member that
// ends hands over its elections. Work that must distinguish the two checks Run's context.
//
// Run returns an error that wraps driver.ErrDenied if reading a seat was denied before it was ever
// allowed. An election can also end alone, as after such a denial or if the work calls
// runtime.Goexit. That does not end the others: Run returns when ctx ends or no election goes on,
// with an error that wraps the first one with which an election ended. If none ended alone, Run
// returns nil once ctx has ended. It returns tenure.ErrRunning if another Run is under way.
func (f *Fleet) Run(ctx context.Context, work tenure.Handler) error {
	if !f.busy.CompareAndSwap(false, true) {
		return tenure.ErrRunning
	}
	defer f.busy.Store(false)
	if lead, ok := work.(tenure.Lead); ok {
		work = function{lead}
	}
	s := f.begin(ctx, work)
	for over := false; !over && ctx.Err() == nil && s.ctx.Err() == nil; {
		var wait time.Duration
		if wait, over = f.round(s); !over {
			f.rest(ctx, wait)
		}
	}
	return s.end()
}

// rest waits until there may be something to do.
func (f *Fleet) rest(ctx context.Context, wait time.Duration) {
	defer f.clock.AfterFunc(wait, f.wake)()
	select {
	case <-f.stir:
	case <-ctx.Done():
	}
}

// wake makes the fleet check for work.
func (f *Fleet) wake() {
	select {
	case f.stir <- struct{}{}:
	default:
	}
}

// round does the work that is due and returns when there may be more. It is over when no election
// goes on.
func (f *Fleet) round(s *session) (wait time.Duration, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now().Mono
	wait = s.period
	if w := f.review(s, now); w > 0 {
		wait = min(wait, w)
	}
	if w := s.start(now); w > 0 {
		wait = min(wait, w)
	}
	return wait, s.over(now)
}

// review reassigns the elections if there is cause to, and returns when there may be more.
func (f *Fleet) review(s *session, now time.Duration) time.Duration {
	if !f.cfg.Spread {
		s.begin()
		return 0
	}
	counted, wait, ok := f.roster.review(now, f.seats.left(), f.seats.renewal)
	f.seats.await(f.roster.awaits)
	if !ok {
		if now-s.since >= f.cfg.lease() {
			s.begin() // without other members to follow, the first to claim leads
		}
		return wait
	}
	s.begin()
	seat, missing := f.roster.own.seat, f.roster.missing(now)
	if seat != f.seat || !slices.Equal(counted, f.counted) || f.uneven && missing <= 0 {
		f.assign(counted, seat, missing > 0)
	}
	if f.uneven {
		wait = earlier(wait, missing)
	}
	return wait
}

// earlier is the shorter of two waits; 0 is none.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// assign tells each entry whether it is assigned to this member. If keep, this member goes on with
// all that it leads: a member that has gone may be back in a moment, and evening out can wait.
func (f *Fleet) assign(counted []int, seat int, keep bool) {
	f.counted, f.seat, f.uneven = counted, seat, false
	hashes := make([]uint64, len(f.entries))
	for i, e := range f.entries {
		hashes[i] = e.hash
	}
	for i, at := range assign(hashes, counted) {
		e, me := f.entries[i], at >= 0 && counted[at] == seat
		if !me && keep && e.led && e.named {
			f.uneven = true
			continue
		}
		e.setAssigned(me)
	}
	f.show()
}

// seen is called for each change of a seat.
func (f *Fleet) seen(number int, who string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.roster.see(f.clock.Now().Mono, number, who)
	f.wake()
}

// sitsOn is called with the seat that this member has.
func (f *Fleet) sitsOn(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.roster.sit(f.clock.Now().Mono, number)
	f.wake()
}
