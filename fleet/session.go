package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
)

// session is one Run. All fields but the contexts are under the fleet's lock.
type session struct {
	f *Fleet
	// ctx is that of the elections. It outlives the one that Run was given, as elections are handed
	// over before they end.
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   tenure.Handler

	since  time.Duration // when it began
	period time.Duration // how often to look for elections that have ended
	looked time.Duration
	open   bool          // the assignment is known, so that claims may be made
	mature bool          // all may claim
	all    time.Duration // when the last was started of those that there were
	fresh  []*entry      // to be started
	asking []*entry      // started, and the store has not answered
	barred []*entry      // started before that, and not eligible
	back   []*entry      // stopped, to be started again when they have ended
	going  int           // elections that were started and have not ended
	first  error         // the first with which one ended
	ended  int           // how many did with an error

	standUp, lookAway context.CancelFunc
	keeping, seeing   sync.WaitGroup
}

// Elections are started, and let claim, so many at a time, with a pause after each; ten thousand
// need two seconds. They are not started faster than the store answers.
const (
	batch = 100
	pause = 20 * time.Millisecond
)

func (f *Fleet) begin(ctx context.Context, work tenure.Handler) *session {
	s := &session{f: f, work: work, period: f.cfg.lease() / 3, mature: !f.cfg.Spread}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run, f.counted, f.seat = s, nil, none
	f.roster = newRoster(f.cfg.Settle, f.cfg.Presence, f.cfg.lease())
	f.moves.begin(s.ctx, f.cfg.finish()+2*f.cfg.Election.Tuning.Precedence)
	s.since = f.clock.Now().Mono
	s.looked, s.all = s.since, s.since
	for _, e := range f.entries {
		e.assigned, e.named, e.queued, e.barred = false, false, false, false
	}
	s.add(f.entries)
	if f.seats != nil {
		s.present()
	}
	return s
}

// present lets this member take a seat, and see the others.
func (s *session) present() {
	seats := s.f.seats
	seats.settle(false)
	keep, standUp := context.WithCancel(s.ctx)
	look, lookAway := context.WithCancel(s.ctx)
	s.standUp, s.lookAway = standUp, lookAway
	seats.fail = func(err error) {
		s.cancel(fmt.Errorf("fleet: %q: the seats: %w", s.f.name, err))
		s.f.wake()
	}
	s.seeing.Go(func() { seats.follow(look) })
	s.keeping.Go(func() { seats.keep(keep) })
}

// add lists elections to start. Each member has an order of its own, so that of members that start
// together on an empty store one makes an election's first record and the others find it.
func (s *session) add(more []*entry) {
	own := s.f.own
	s.fresh = append(s.fresh, more...)
	slices.SortFunc(s.fresh, func(a, b *entry) int { return cmp.Compare(scramble(a.hash^own), scramble(b.hash^own)) })
}

// start starts elections, and returns when there are more to start; 0 if there are none.
func (s *session) start(now time.Duration) (wait time.Duration) {
	s.back = slices.DeleteFunc(s.back, func(e *entry) bool { s.collect(e); return e.done == nil || e.gone })
	s.asking = slices.DeleteFunc(s.asking, answered)
	for range min(batch-len(s.asking), len(s.fresh)) {
		e := s.fresh[0]
		s.fresh = s.fresh[1:]
		s.startOne(e)
		s.all = now
	}
	wait = s.release(now)
	if len(s.fresh) > 0 || len(s.back) > 0 {
		return pause
	}
	return wait
}

// answered reports whether the store has said anything about an election.
func answered(e *entry) bool {
	s := e.election.Status()
	return s.Known || s.Failures > 0 || s.Err != nil || e.gone
}

func (s *session) startOne(e *entry) {
	if e.gone {
		return
	}
	if s.bar(e); !e.barred {
		e.election.SetEligible(true) // it may not have been when it was stopped
	}
	if err := e.join(s.ctx, s.work); err != nil {
		s.note(err)
		return
	}
	s.asking = append(s.asking, e)
	s.going++
}

// begin is called at each look at the members that knows the assignment.
func (s *session) begin() {
	if s.open {
		return
	}
	s.open = true
	if s.f.seats != nil {
		s.f.seats.settle(true)
	}
}

// release lets elections claim that were started before the assignment was known: assigned ones at
// once, and others after a lease. The time for which an election has had no leader, or since when
// its lease is waited for, says nothing yet of other members that start as well, and may have begun
// with it later.
func (s *session) release(now time.Duration) (wait time.Duration) {
	if !s.open || s.mature {
		return 0
	}
	cfg := &s.f.cfg
	left, few := s.all+cfg.lease()+cfg.Election.Tuning.Precedence-now, batch
	s.barred = slices.DeleteFunc(s.barred, func(e *entry) bool {
		if e.gone {
			e.barred = false
			return true
		}
		if few == 0 || left > 0 && !e.named {
			return false
		}
		few--
		e.barred = false
		e.election.SetEligible(true)
		return true
	})
	s.mature = left <= 0 && len(s.barred) == 0
	if few == 0 || left <= 0 {
		return pause
	}
	return left
}

// bar has an election wait that this member is not to lead, unless it does.
func (s *session) bar(e *entry) {
	if !s.mature && !e.led && !e.barred {
		e.barred = true
		e.election.SetEligible(false)
		s.barred = append(s.barred, e)
	}
}

// over looks from time to time which elections have ended, and reports whether all have.
func (s *session) over(now time.Duration) bool {
	if now-s.looked >= s.period {
		s.looked = now
		for _, e := range s.f.entries {
			s.collect(e)
		}
		for name, e := range s.f.left {
			if s.collect(e); e.done == nil {
				delete(s.f.left, name)
			}
		}
	}
	return len(s.fresh) == 0 && s.going == 0 && s.ended > 0
}

// collect takes the result of an election that has ended.
func (s *session) collect(e *entry) {
	select {
	case err := <-e.done:
		s.took(e, err)
	default: // also where there is nothing to come
	}
}

func (s *session) took(e *entry, err error) {
	e.done = nil
	e.count(false) // a Handler's work that has resigned does not report its end
	s.going--
	s.note(err)
	if err == nil && s.ctx.Err() == nil && !e.gone {
		// its work has resigned: that ends a term, not this member's part in the election
		s.add([]*entry{e})
	}
}

func (s *session) note(err error) {
	if err == nil {
		return
	}
	if s.ended++; s.first == nil {
		s.first = err
	}
}
