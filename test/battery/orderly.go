package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// resign asks the leader's tenure to stop (SIGTERM), and waits for the next worker.
func (s *stage) resign() error {
	c, old, err := s.leader()
	if err != nil {
		return err
	}
	at, err := s.retire(c)
	if err != nil {
		return err
	}
	next, err := s.next(old)
	if err == nil {
		s.timed(at, old, next)
	}
	return err
}

// resignUnheard is the same while the leader cannot reach the server, so that its release is lost.
func (s *stage) resignUnheard() error {
	c, _, err := s.leader()
	if err != nil {
		return err
	}
	s.tell("%s: %s", c.id(), blackhole.name)
	end, err := blackhole.begin(c)
	if err != nil {
		return err
	}
	s.sleep(s.some(s.lease / 2))
	return errors.Join(s.resign(), end())
}

// retire asks a tenure that leads to stop, and waits until it has.
func (s *stage) retire(c *candidate) (at int64, err error) {
	guard, err := c.guard()
	if err != nil {
		return 0, err
	}
	at = s.tell("%s: is asked to stop", c.id())
	if err := c.stop(); err != nil {
		return at, err
	}
	return at, s.ends(c, guard, s.row.code)
}

// ends waits until a tenure has ended by itself, and checks the processes that it leaves behind.
func (s *stage) ends(c *candidate, guard, want int) error {
	ctx, cancel := s.patience()
	defer cancel()
	code, err := c.exit(ctx)
	if err != nil {
		return err
	}
	s.tell("%s: has ended with exit code %d", c.id(), code)
	if code != want {
		s.wrong("tenure of %s ended with exit code %d, not %d", c.id(), code, want)
	}
	return s.vanish(c, guard)
}

// finale lets all remaining candidates lead in turn, after any fault, and stop.
func (s *stage) finale() error {
	for {
		c, old, err := s.leader()
		left := s.running()
		switch {
		case left == 0:
			return nil
		case err != nil:
			return err
		}
		at := machine.Now()
		if c.running() { // it may have lost the lease on a busy machine, and have ended since
			if at, err = s.retire(c); err != nil || left == 1 {
				return err
			}
		}
		next, err := s.next(old)
		if err != nil {
			return fmt.Errorf("when %s had left: %w", c.id(), err)
		}
		s.timely(at, next)
	}
}

func (s *stage) running() int {
	n := 0
	for _, c := range s.candidates {
		if c.running() {
			n++
		}
	}
	return n
}

// exits lets each worker come to the end of its life, one after another.
func (s *stage) exits() error {
	guards := map[*candidate]int{}
	c, old, err := s.leader()
	for err == nil {
		guard, none := c.guard()
		if none != nil && !errors.Is(none, errNoGuard) { // on a busy machine its life may be over
			return none
		}
		guards[c] = guard
		if len(guards) == len(s.candidates) {
			break
		}
		var next reign
		if next, err = s.next(old); err != nil {
			break
		}
		s.timed(s.watch.lastActOf(old), old, next)
		old = next
		c, err = s.candidate(old)
	}
	for c, guard := range guards { // tenure ends later than a command that failed soon
		if err == nil {
			err = s.ends(c, guard, s.row.code)
		}
	}
	return err
}

// murder kills the command itself, which is an end like any other.
func (s *stage) murder() error {
	s.settle()
	c, old, err := s.leader()
	if err != nil {
		return err
	}
	guard, err := c.guard()
	if err != nil {
		return err
	}
	at := s.tell("%s: its command is killed", c.id())
	if err := kill(old.root); err != nil {
		return err
	}
	if err := s.ends(c, guard, codeKilled); err != nil {
		return err
	}
	next, err := s.next(old)
	if err == nil {
		s.timed(at, old, next)
	}
	return err
}

// handOvers asks for one in favor of a candidate, and for one in favor of any.
func (s *stage) handOvers() error {
	for _, named := range []bool{true, false} {
		s.settle() // the last leader sits out a head start
		c, _, err := s.leader()
		if err != nil {
			return err
		}
		to := ""
		if named {
			to = s.after(c).id()
		}
		took, err := s.handOver(c, to)
		switch {
		case err != nil:
			return err
		case took == c, named && took.id() != to:
			s.wrong("%s was to hand over to %q, and %s leads", c.id(), to, took.id())
		}
	}
	return nil
}

// after is another candidate.
func (s *stage) after(c *candidate) *candidate { return s.candidates[c.number%len(s.candidates)] }

// handOver asks the leader, and returns the leader after that.
func (s *stage) handOver(c *candidate, to string) (*candidate, error) {
	old, _ := s.watch.last()
	at := s.tell("%s: is asked to hand over to %q", c.id(), to)
	if err := s.askToHandOver(s.b.ctx, to); err != nil {
		return nil, err
	}
	next, err := s.next(old)
	if err != nil {
		return nil, err
	}
	s.timed(at, old, next)
	took, _, err := s.leader()
	return took, err
}

// spare stops the guard of a follower, and has the leader hand over to it: it must find out, and
// let others lead or find another guard.
func (s *stage) spare() error {
	c, _, err := s.leader()
	if err != nil {
		return err
	}
	to := s.after(c)
	s.tell("%s: %s", to.id(), freezeGuard.name)
	thaw, err := freezeGuard.begin(to)
	if err != nil {
		return err
	}
	_, err = s.handOver(c, to.id())
	return errors.Join(err, thaw())
}

// askToHandOver runs the command that asks, as an operator that is no candidate.
func (s *stage) askToHandOver(ctx context.Context, to string) error {
	args := []string{"hand-over", "--store", s.server.store(s.server.Address()), "--election", election}
	if to != "" {
		args = append(args, "--to", to)
	}
	cmd := exec.CommandContext(ctx, s.tenure, args...)
	cmd.Env = environment(s.mark)
	machine.Together(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("hand-over: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// timely notes whether a worker began in time.
func (s *stage) timely(at int64, next reign) {
	if took := time.Duration(next.began - at); took > s.bound() {
		s.late("the next worker began after %v, later than %v", took, s.bound())
	}
}
