package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// fault is a fault of one candidate, or of the server.
type fault struct {
	name string
	// begin injects the fault. It returns the function that ends it, or nil if the fault has no
	// end. lasts is the time before the end, in leases.
	begin func(*candidate) (end func() error, err error)
	lasts float64
	// outage is set if no candidate can be elected before the end.
	outage bool
}

// inject injects a fault, and waits for the next worker.
func (s *stage) inject(f fault) error {
	c, old, err := s.leader()
	if err != nil {
		return err
	}
	at := s.note("%s: %s", c.id(), f.name)
	end, err := f.begin(c)
	if err != nil {
		return err
	}
	over := time.Now().Add(time.Duration(f.lasts * float64(s.lease)))
	if f.outage {
		s.sleep(time.Until(over))
		if at, err = s.relieve(c, end); err != nil {
			return err
		}
	}
	next, err := s.next(old)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	s.timed(at, old, next)
	if end != nil && !f.outage {
		s.sleep(time.Until(over))
		_, err = s.relieve(c, end)
	}
	s.sleep(s.lease / 2) // a process that continues now may still act
	return err
}

// relieve ends a fault and returns the time.
func (s *stage) relieve(c *candidate, end func() error) (int64, error) {
	at := s.note("%s: the end of that", c.id())
	return at, end()
}

// timed records how long after a fault the old worker acted, and when the next one began.
func (s *stage) timed(at int64, old, next reign) {
	last, first := s.watch.lastActOf(old), next.began
	s.timely(at, next)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.last = append(s.seen.last, max(time.Duration(last-at), 0))
	s.seen.next = append(s.seen.next, time.Duration(first-at))
	s.seen.idle = append(s.seen.idle, time.Duration(first-last))
}

// thawing is the time for the command to stop. It is so long that tenure continues before its end.
// A guard that then counts the whole time again lets the command live until another candidate
// leads. So the flaw shows even if both processes are late.
const thawing = 800 * time.Millisecond

// thaw stops tenure until the guard has asked the command to stop by itself, and a part of the time
// for that has passed. When tenure continues, it must not lengthen that time.
func (s *stage) thaw() error {
	c, old, err := s.leader()
	if err != nil {
		return err
	}
	at := s.note("%s: %s", c.id(), freeze.name)
	end, err := freeze.begin(c)
	if err != nil {
		return err
	}
	asked, err := s.asked(old)
	if err != nil {
		return errors.Join(err, end())
	}
	s.sleep(thawing*9/16 + s.some(thawing/16) - time.Duration(machine.Now()-asked))
	if _, err := s.relieve(c, end); err != nil {
		return err
	}
	next, err := s.next(old)
	if err == nil {
		s.timed(at, old, next)
	}
	s.sleep(s.lease / 2)
	return err
}

// stopGuard stops the leader's guard. The kernel continues it before the lease runs out, so the
// leader leads on.
func (s *stage) stopGuard() error {
	c, old, err := s.leader()
	if err != nil {
		return err
	}
	s.note("%s: %s", c.id(), freezeGuard.name)
	end, err := freezeGuard.begin(c)
	if err != nil {
		return err
	}
	s.sleep(time.Duration(freezeGuard.lasts * float64(s.lease)))
	if next, _ := s.watch.last(); next != old {
		s.late("%s does not lead on: the guard was continued too late", c.id())
	}
	_, err = s.relieve(c, end)
	return err
}
