package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tenure-go/tenure"
)

// session is one Run. All fields but the contexts are under the fleet's lock.
type session struct {
	f *Fleet
	// ctx is the context of the elections. It ends after the context of Run, because elections are
	// handed over in between.
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   tenure.Handler

	since           time.Duration // when it began
	checkEvery      time.Duration // how often to look for elections that have ended
	lastCheck       time.Duration
	assignmentKnown bool          // elections may claim
	allMayClaim     bool          // also elections that are not assigned to this member
	lastStart       time.Duration // when the last election was started
	toStart         []*entry      // to be started
	unanswered      []*entry      // started, and the store has not answered
	waiting         []*entry      // started, and not eligible yet: see letClaim
	running         int           // elections that were started and have not ended
	first           error         // the error of the first election that ended with one
	ended           int           // how many elections have ended with an error

	releaseSeat, stopFollowing func() // they wait until that is done
}

// Elections are started, and allowed to claim, in batches, with a pause after each batch: ten
// thousand take two seconds. They are not started faster than the store answers.
const (
	batch = 100
	pause = 20 * time.Millisecond
)

func (f *Fleet) begin(ctx context.Context, work tenure.Handler) *session {
	s := &session{f: f, work: work, checkEvery: f.full.Lease / 3}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run, f.counted, f.seat = s, nil, none
	f.roster = newRoster(f.cfg.Settle, f.cfg.Presence, f.full.Lease)
	f.moves.begin(s.ctx, f.full.FinishWithin+2*f.full.Nomination.Precedence)
	s.since = f.full.Clock.Now().Mono
	s.lastCheck, s.lastStart = s.since, s.since
	for _, e := range f.entries {
		e.assigned, e.isNominee, e.queued, e.ineligible = false, false, false, false
	}
	s.add(f.entries)
	s.takePart()
	return s
}

// takePart makes this member take a seat, and follow the seats of the others.
func (s *session) takePart() {
	seats := s.f.seats
	s.stopFollowing = inBackground(s.ctx, func(ctx context.Context) {
		if err := seats.follow(ctx); err != nil {
			s.cancel(fmt.Errorf("fleet: %q: the seats: %w", s.f.name, err))
			s.f.wake()
		}
	})
	s.releaseSeat = inBackground(s.ctx, seats.holdSeat)
}

// inBackground calls a function in a goroutine. The result ends its context, and waits until it
// returns.
func inBackground(ctx context.Context, run func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// add queues elections to start. Each member has its own order. So if members start together on an
// empty store, mostly one of them writes the first record of an election, and the others find it.
func (s *session) add(more []*entry) {
	own := s.f.own
	s.toStart = append(s.toStart, more...)
	slices.SortFunc(s.toStart, func(a, b *entry) int { return cmp.Compare(scramble(a.hash^own), scramble(b.hash^own)) })
}

// start starts elections, also those that SetElections has taken back and that have ended. It
// returns how long to wait before it is called again; 0 if none is left.
func (s *session) start(now time.Duration) (wait time.Duration) {
	for name, e := range s.f.leaving {
		if s.collect(e); e.done == nil {
			delete(s.f.leaving, name)
		}
	}
	s.unanswered = slices.DeleteFunc(s.unanswered, answered)
	for range min(batch-len(s.unanswered), len(s.toStart)) {
		e := s.toStart[0]
		s.toStart = s.toStart[1:]
		s.startOne(e)
		s.lastStart = now
	}
	wait = s.letClaim(now)
	if len(s.toStart) > 0 || len(s.f.leaving) > 0 {
		return pause
	}
	return wait
}

// answered reports whether the store has answered for an election.
func answered(e *entry) bool {
	s := e.election.Status()
	return s.Known || s.Failures > 0 || s.Err != nil || e.removed
}

func (s *session) startOne(e *entry) {
	if e.removed {
		return
	}
	if s.makeIneligible(e); !e.ineligible {
		e.election.SetEligible(true) // it may have been ineligible when it was stopped
	}
	ended, err := e.group.Join(s.ctx, e.election, &trackedWork{e, s.work})
	if err != nil {
		s.recordError(err)
		return
	}
	e.done = ended
	s.unanswered = append(s.unanswered, e)
	s.running++
}

// knowAssignment is called whenever the assignment is known. Only the first call has an effect.
func (s *session) knowAssignment() {
	if !s.assignmentKnown {
		s.assignmentKnown = true
		s.f.seats.settle()
	}
}

// letClaim makes elections eligible that were started before the assignment was known: assigned
// ones at once, and others after a lease. Before that, other members may be starting too, and may
// not have had the time to claim their elections.
func (s *session) letClaim(now time.Duration) (wait time.Duration) {
	if !s.assignmentKnown || s.allMayClaim {
		return 0
	}
	full := &s.f.full
	left, few := s.lastStart+full.Lease+full.Nomination.Precedence-now, batch
	s.waiting = slices.DeleteFunc(s.waiting, func(e *entry) bool {
		if e.removed {
			e.ineligible = false
			return true
		}
		if few == 0 || left > 0 && !e.isNominee {
			return false
		}
		few--
		e.ineligible = false
		e.election.SetEligible(true)
		return true
	})
	s.allMayClaim = left <= 0 && len(s.waiting) == 0
	if few == 0 || left <= 0 {
		return pause
	}
	return left
}

// makeIneligible makes an election wait until letClaim, unless this member leads it.
func (s *session) makeIneligible(e *entry) {
	if !s.allMayClaim && !e.isLed && !e.ineligible {
		e.ineligible = true
		e.election.SetEligible(false)
		s.waiting = append(s.waiting, e)
	}
}

// over checks from time to time which elections have ended, and reports whether all have.
func (s *session) over(now time.Duration) bool {
	if now-s.lastCheck >= s.checkEvery {
		s.lastCheck = now
		for _, e := range s.f.entries {
			s.collect(e)
		}
	}
	return len(s.toStart) == 0 && s.running == 0 && s.ended > 0
}

// collect records the result of an election if it has ended.
func (s *session) collect(e *entry) {
	select {
	case err := <-e.done:
		s.recordEnd(e, err)
	default: // also if done is nil
	}
}

func (s *session) recordEnd(e *entry, err error) {
	e.done = nil
	e.count(false) // a Handler whose work resigns is not called again
	s.running--
	s.recordError(err)
	if err == nil && s.ctx.Err() == nil && !e.removed {
		// the work has resigned, which ends the term; this member campaigns again
		s.add([]*entry{e})
	}
}

func (s *session) recordError(err error) {
	if err == nil {
		return
	}
	if s.ended++; s.first == nil {
		s.first = err
	}
}

// end hands over this member's elections, ends all elections, and returns Run's result.
func (s *session) end() error {
	s.releaseSeat()
	s.handOverAll()
	s.stopFollowing()
	cause := context.Cause(s.ctx)
	s.cancel(nil)
	s.wait()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.moves.stopWaits()
	clear(s.f.leaving)
	s.f.seats.reset()
	s.f.run, s.f.counted, s.f.seat = nil, nil, none
	s.f.notifyChanged()
	switch {
	case cause != nil:
		return cause
	case s.ended > 1:
		return fmt.Errorf("fleet: %q: %d elections ended by themselves; the first: %w", s.f.name, s.ended, s.first)
	}
	return s.first
}

// handOverAll hands over all elections if there are other members. They know by now that this
// member has released its seat.
func (s *session) handOverAll() {
	f := s.f
	f.mu.Lock()
	others := slices.DeleteFunc(slices.Clone(f.counted), func(seat int) bool { return seat == f.seat })
	f.moves.hurry(s.ctx)
	if len(others) > 0 && s.ctx.Err() == nil {
		f.assign(others, none, false)
	}
	for !f.moves.done() {
		f.mu.Unlock()
		f.waitForWork(s.ctx, s.checkEvery)
		f.mu.Lock()
	}
	f.mu.Unlock()
}

// wait waits until all elections have ended. The work of a leader may take FinishWithin to finish.
func (s *session) wait() {
	s.f.mu.Lock()
	all := slices.AppendSeq(slices.Clone(s.f.entries), maps.Values(s.f.leaving))
	s.f.mu.Unlock()
	for _, e := range all {
		if e.done != nil {
			err := <-e.done
			s.f.mu.Lock()
			s.recordEnd(e, err)
			s.f.mu.Unlock()
		}
	}
}
