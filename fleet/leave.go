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
		s.standUp()
		s.keeping.Wait()
		s.give()
		s.lookAway()
		s.seeing.Wait()
	}
	cause := context.Cause(s.ctx)
	s.cancel(nil)
	s.wait()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.moves.hurry()
	clear(s.f.left) // also entries that left the list while all were waited for
	s.f.run, s.f.counted, s.f.seat = nil, nil, none
	s.f.show()
	switch {
	case cause != nil:
		return cause
	case s.ended > 1:
		return fmt.Errorf("fleet: %q: %d elections ended by themselves; the first: %w", s.f.name, s.ended, s.first)
	}
	return s.first
}

// give hands over, if there are other members, which know by now that this member has no seat any
// more.
func (s *session) give() {
	f := s.f
	f.mu.Lock()
	others := slices.DeleteFunc(slices.Clone(f.counted), func(seat int) bool { return seat == f.seat })
	f.moves.leave(s.ctx)
	if len(others) > 0 && s.ctx.Err() == nil {
		f.assign(others, none, false)
	}
	for !f.moves.done() {
		f.mu.Unlock()
		f.rest(s.ctx, s.period)
		f.mu.Lock()
	}
	f.mu.Unlock()
}

// wait waits until all have ended, which the work of leaders takes its time for.
func (s *session) wait() {
	s.f.mu.Lock()
	all := slices.AppendSeq(slices.Clone(s.f.entries), maps.Values(s.f.left))
	clear(s.f.left)
	s.f.mu.Unlock()
	for _, e := range all {
		if e.done != nil {
			err := <-e.done
			s.f.mu.Lock()
			s.took(e, err)
			s.f.mu.Unlock()
		}
	}
}
