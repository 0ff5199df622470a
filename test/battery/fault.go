package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// fault strikes a leader, or the server of all.
type fault struct {
	name string
	// begin returns the function that ends it, to call after so many leases; nil: it has no end.
	begin func(*candidate) (end func() error, err error)
	lasts float64
	// outage: no candidate can be elected before its end.
	outage bool
}

// inject injects a fault, and waits for the next worker.
func (s *stage) inject(f fault) error {
	c, old, err := s.leader()
	if err != nil {
		return err
	}
	at := s.tell("%s: %s", c.id(), f.name)
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
	s.sleep(s.lease / 2) // a process that comes back now may do something wrong
	return err
}

// relieve ends a fault and returns when.
func (s *stage) relieve(c *candidate, end func() error) (int64, error) {
	at := s.tell("%s: the end of that", c.id())
	return at, end()
}

// timed keeps how long after a fault the old worker acted, and the next one began.
func (s *stage) timed(at int64, old, next reign) {
	last, first := s.watch.lastActOf(old), next.began
	s.timely(at, next)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.last = append(s.seen.last, max(time.Duration(last-at), 0))
	s.seen.next = append(s.seen.next, time.Duration(first-at))
	s.seen.idle = append(s.seen.idle, time.Duration(first-last))
}

// thawing is the time for the command to stop: enough that tenure goes on before its end, and that
// a guard which counts it again then lets the command live until another leads, also where both are
// late.
const thawing = 800 * time.Millisecond

// thaw stops tenure until the guard by itself has asked the command to stop, and a part of the
// command's time for that has passed. The state that tenure finds then must not lengthen it.
func (s *stage) thaw() error {
	c, old, err := s.leader()
	if err != nil {
		return err
	}
	at := s.tell("%s: %s", c.id(), freeze.name)
	end, err := freeze.begin(c)
	if err != nil {
		return err
	}
	asked, err := s.asked(old)
	if err != nil {
		return errors.Join(err, end())
	}
	s.sleep(thawing/2 + s.some(thawing/16) - time.Duration(machine.Now()-asked))
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
