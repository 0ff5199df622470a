package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// end hands over this member's elections, ends all elections, and returns Run's result.
func (s *session) end() error {
	if s.f.seats != nil {
		s.releaseSeat()
		s.holding.Wait()
		s.handOverAll()
		s.stopFollowing()
		s.following.Wait()
	}
	cause := context.Cause(s.ctx)
	s.cancel(nil)
	s.wait()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.moves.stopWaits()
	clear(s.f.removed) // also entries that SetElections removed during the wait
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
	all := slices.AppendSeq(slices.Clone(s.f.entries), maps.Values(s.f.removed))
	clear(s.f.removed)
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
