package slots

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/clock"
)

// session is one Run. Only its goroutine uses it, except for ctx and ended.
type session struct {
	m       *Member
	ctx     context.Context
	cancel  context.CancelCauseFunc
	handler tenure.Handler
	ended   chan end
	engaged int // the slots in which this member campaigns or leads
	since   time.Duration
	first   error
}

// end is the end of this member's part in one slot.
type end struct {
	slot *slot
	err  error
}

func (m *Member) now() clock.Reading { return m.full.Clock.Now() }

// follow observes all slots until the session ends.
func (s *session) follow() (done <-chan struct{}) {
	all := make(chan struct{})
	go func() {
		defer close(all)
		for _, err := range s.m.group.Watch(s.ctx) {
			if err != nil {
				s.cancel(s.m.denied(err))
				return
			}
			s.m.wake()
		}
	}()
	return all
}

// wait waits until there may be something to do.
func (s *session) wait(limit time.Duration) {
	defer s.m.full.Clock.AfterFunc(limit, s.m.wake)()
	select {
	case <-s.m.wakeup:
	case e := <-s.ended:
		s.collect(e)
	case <-s.ctx.Done():
	}
}

// review does all that is due, and returns how long to wait for more.
func (s *session) review() time.Duration {
	m := s.m
	now := m.now()
	for _, one := range m.slots {
		one.look(now, m.full.Lease)
	}
	s.setGates()
	s.leaveTaken(now)
	s.engage(now)
	s.setPaces()
	m.publish(m.snapshot())
	return s.next(now)
}

// setGates applies the rules of the package to each slot.
func (s *session) setGates() {
	smallest, oldest, seen := s.m.cfg.Slots, clock.Instant{}, true
	for i, one := range s.m.slots {
		one.gate.set(seen && one.number <= smallest, i == 0, oldest)
		if one.size > 0 {
			smallest = min(smallest, one.size)
		}
		if seen = seen && one.seen; i == 0 || oldest.LeaderSince(one.viewed) > 0 {
			oldest = one.viewed
		}
	}
}

// leaveTaken ends the campaigns for slots that another member has, or that are above the number of
// slots. It never ends a term: the gate does that.
func (s *session) leaveTaken(now clock.Reading) {
	limit := s.m.limit()
	for _, one := range s.m.slots {
		if one.stop == nil || one.own() || one.status.State != tenure.StateCandidate {
			continue
		}
		if one.number > limit || !one.free() && !one.offered(now, &s.m.full) {
			one.stopped = true
			one.stop()
		}
	}
}

// limit returns the number of slots by which this member goes: the smallest one that the leader of
// a slot shows, or its own.
func (m *Member) limit() int {
	smallest := m.cfg.Slots
	for _, one := range m.slots {
		if one.size > 0 {
			smallest = min(smallest, one.size)
		}
	}
	return smallest
}

// engage campaigns for free slots until this member takes part in as many as it may. A campaign
// that was ended counts until its claim is withdrawn, so this member never wins too many.
func (s *session) engage(now clock.Reading) {
	for s.engaged < s.m.cfg.PerMember && s.ctx.Err() == nil {
		one := s.choose(now)
		if one == nil {
			return
		}
		s.begin(one)
	}
}

// choose returns the slot to campaign for, or nil. Until all slots are known, or half a lease has
// passed, it chooses none: members would all find the same one first.
func (s *session) choose(now clock.Reading) (best *slot) {
	m := s.m
	if m.pauseLeft(now) > 0 || s.gatherLeft(now) > 0 {
		return nil
	}
	limit, blind, top := m.limit(), false, uint64(0)
	for _, one := range m.slots {
		if one.number > limit {
			break
		}
		if w := m.preference(one, now, blind); one.stop == nil && w > top {
			best, top = one, w
		}
		blind = blind || !one.legible() || one.status.Failures > 2
	}
	return best
}

// gatherLeft returns how long to wait for the first view of all slots.
func (s *session) gatherLeft(now clock.Reading) time.Duration {
	for _, one := range s.m.slots {
		if !one.status.Known {
			return max(0, s.since+s.m.full.Lease/2-now.Mono)
		}
	}
	return 0
}

// preference orders the slots; 0 means that this member must not campaign for it. A slot that is
// handed over to this member comes first, then those that may be claimed, then those that were
// released, which are free at once. Members prefer different slots, so that they rarely claim the
// same one.
func (m *Member) preference(one *slot, now clock.Reading, blind bool) uint64 {
	const offered, claimable, released = 1 << 63, 1 << 62, 1 << 61
	h := fnv.New64a()
	h.Write([]byte(strconv.Itoa(one.number) + " " + m.full.ID))
	w := h.Sum64()>>3 | 1
	switch {
	case one.offered(now, &m.full):
		return w | offered
	case !one.free():
		return 0
	}
	if !blind {
		w |= claimable
	}
	if one.status.Record.Kind == admin.Released {
		w |= released
	}
	return w
}

// begin campaigns for a slot.
func (s *session) begin(one *slot) {
	ctx, cancel := context.WithCancel(s.ctx)
	ended, err := s.m.group.Join(ctx, one.election, &work{s.m, s.handler})
	if err != nil { // someone else campaigns in it, with ElectionOf
		cancel()
		s.cancel(s.m.denied(err))
		return
	}
	one.stop, one.stopped = cancel, false
	s.engaged++
	go func() {
		err := <-ended
		s.ended <- end{one, err}
	}()
}

// collect takes the end of this member's part in a slot. Without an error, its campaign was ended
// by this package, or its work ended unasked.
func (s *session) collect(e end) {
	s.engaged--
	e.slot.stop()
	e.slot.stop = nil
	if e.err != nil && s.first == nil {
		s.first = e.err
	}
	if e.err != nil || !e.slot.stopped {
		s.cancel(errEnded)
	}
}

// setPaces sets how often the slots are read where nothing is pushed.
func (s *session) setPaces() {
	how := paceIdle
	if s.engaged < s.m.cfg.PerMember {
		how = paceSeek
	}
	for i := len(s.m.slots) - 1; i >= 0; i-- {
		one := s.m.slots[i]
		if one.pace != how {
			one.pace = how
			p := how
			// it cannot fail: New has accepted these settings
			_ = one.election.Reconfigure(func(c *tenure.Config) { *c = p.at(s.m.base, &s.m.full) })
		}
		if one.stop != nil {
			how = paceClose
		}
	}
}

// next returns how long to wait for the next review.
func (s *session) next(now clock.Reading) time.Duration {
	m := s.m
	wait := m.full.Lease
	for _, left := range []time.Duration{m.pauseLeft(now), s.gatherLeft(now)} {
		if left > 0 {
			wait = min(wait, left)
		}
	}
	for _, one := range m.slots {
		if left := one.goneLeft(now, m.full.Lease); left > 0 {
			wait = min(wait, left)
		}
		if one.stop != nil && one.number > 1 {
			wait = min(wait, m.full.Lease/8)
			if left := one.gate.left(); left > 0 {
				wait = min(wait, left)
			}
		}
	}
	return max(wait, time.Millisecond)
}

// finish ends all parts, and returns the result of Run.
func (s *session) finish() error {
	for s.engaged > 0 {
		s.collect(<-s.ended)
	}
	cause := context.Cause(s.ctx)
	switch {
	case s.first != nil:
		return s.first
	case errors.Is(cause, tenure.ErrDenied), errors.Is(cause, tenure.ErrRunning):
		return cause
	}
	return nil
}
