package main

import (
	"fmt"
	"time"
)

// inspect looks for processes of older workers when a new worker begins. All of them must be gone
// by then, also idle ones.
func (s *stage) inspect(r reign) {
	all, err := processesOf(s.mark)
	if err != nil {
		s.wrong("cannot look for processes: %v", err)
	}
	s.note("c%d runs its worker: token %d, process %d", r.candidate, r.token, r.root)
	for _, p := range all {
		if p.older(r.token) {
			s.orphan(p, "when the worker with token %d had begun", r.token)
		}
	}
}

func (s *stage) orphan(p process, format string, args ...any) {
	s.wrong("%v is left "+format, append([]any{p}, args...)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.orphans++
}

// leftover is an orphan of a tenure that has ended in order.
func (s *stage) leftover(p process, format string, args ...any) {
	s.orphan(p, format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.leftovers++
}

// leaving is how soon a guard should end after its tenure. It has no work left then.
const leaving = 2 * time.Second

// checkLeftovers looks for processes of a tenure that has ended without being killed. No worker may
// be left. The guard must end, if there was one.
func (s *stage) checkLeftovers(c *candidate, guard int) error {
	for began := time.Now(); ; s.sleep(glance) {
		all, err := processesOf(s.mark)
		if err != nil {
			return err
		}
		there := false
		for _, p := range all {
			if p.id == c.id() {
				s.leftover(p, "when tenure of %s had ended", c.id())
				return nil
			}
			there = there || p.pid == guard
		}
		took := time.Since(began)
		switch {
		case !there && took > leaving:
			s.late("the guard of %s ended %v after its tenure, later than %v", c.id(), took, leaving)
			return nil
		case !there:
			return nil
		case s.b.ctx.Err() != nil:
			return fmt.Errorf("the guard of %s has not ended: %w", c.id(), s.b.ctx.Err())
		}
	}
}

// empty looks for remaining processes when all candidates have ended normally.
func (s *stage) empty() error {
	all, err := processesOf(s.mark)
	for _, p := range all {
		s.leftover(p, "when all had ended")
	}
	return err
}
