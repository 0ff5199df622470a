package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// stopLeader asks the leader's tenure to stop (SIGTERM), and waits for the next worker.
func (s *stage) stopLeader() error {
	c, old, err := s.leader()
	if err != nil {
		return err
	}
	at, err := s.stopAndCheck(c)
	if err != nil {
		return err
	}
	return s.succeed(at, old)
}

// stopLeaderUnheard stops the leader while it cannot reach the server, so that its release is lost.
func (s *stage) stopLeaderUnheard() error {
	c, _, err := s.leader()
	if err != nil {
		return err
	}
	s.note("%s: %s", c.id(), blackhole.name)
	end, err := blackhole.begin(c)
	if err != nil {
		return err
	}
	s.sleep(s.some(s.lease / 2))
	return errors.Join(s.stopLeader(), end())
}

// stopAndCheck asks a tenure that leads to stop, and waits until it has ended.
func (s *stage) stopAndCheck(c *candidate) (at int64, err error) {
	guard, err := c.guard()
	if err != nil {
		return 0, err
	}
	at = s.note("%s: is asked to stop", c.id())
	if err := c.Stop(); err != nil {
		return at, err
	}
	return at, s.ends(c, guard, s.row.code)
}

// ends waits until a tenure has ended by itself. It checks the exit code and the remaining
// processes.
func (s *stage) ends(c *candidate, guard, want int) error {
	ctx, cancel := s.patience()
	defer cancel()
	if err := c.wait(ctx); err != nil {
		return err
	}
	code := c.Code()
	s.note("%s: has ended with exit code %d", c.id(), code)
	if code != want {
		s.wrong("tenure of %s ended with exit code %d, not %d", c.id(), code, want)
	}
	return s.checkLeftovers(c, guard)
}

// finale lets all remaining candidates lead in turn, after any fault, and stop.
func (s *stage) finale() error {
	defer s.checkCodes()
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
		if c.running() { // on a busy machine it may have lost the lease and ended
			if at, err = s.stopAndCheck(c); err != nil || left == 1 {
				return err
			}
		}
		next, err := s.nextOfRunning(old)
		switch {
		case err == nil:
			s.timely(at, next)
		case s.running() > 0 || !s.row.lingers:
			return fmt.Errorf("when %s had left: %w", c.id(), err)
		}
	}
}

// nextOfRunning waits for the reign after another, as long as a candidate runs.
func (s *stage) nextOfRunning(old reign) (reign, error) {
	ctx, cancel := context.WithCancel(s.b.ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for _, c := range s.candidates {
			_ = c.wait(ctx)
		}
		cancel()
	})
	r, err := s.watch.await(ctx, old)
	cancel()
	all.Wait()
	return r, err
}

// checkCodes checks the exit codes of all candidates that have ended.
func (s *stage) checkCodes() {
	for _, c := range s.candidates {
		if !c.running() {
			s.checkCode(c)
		}
	}
}

// checkCode checks the exit code of a candidate that has ended. The battery has killed it, or its
// command, or has asked it to stop. Any other candidate must not end.
func (s *stage) checkCode(c *candidate) {
	switch code := c.Code(); code {
	case codeSignal, codeKilled, s.row.code:
	default:
		s.wrong("tenure of %s ended by itself, with exit code %d", c.id(), code)
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

// exits waits until the worker of each candidate has ended by itself, one after another.
func (s *stage) exits() error {
	guards := map[*candidate]int{}
	old, err := s.next(reign{}) // the first, which may have ended by now
	if err != nil {
		return err
	}
	c, err := s.candidate(old)
	for err == nil {
		guard, none := c.guard()
		if none != nil && !errors.Is(none, errNoGuard) { // the worker may have ended
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

// killCommand kills the command itself. For tenure that is an end of the command like any other.
func (s *stage) killCommand() error {
	s.settle()
	c, old, err := s.leader()
	if err != nil {
		return err
	}
	guard, err := c.guard()
	if err != nil {
		return err
	}
	at := s.note("%s: its command is killed", c.id())
	if err := crew.Kill(old.root); err != nil {
		return err
	}
	if err := s.ends(c, guard, codeKilled); err != nil {
		return err
	}
	return s.succeed(at, old)
}

// handOvers asks for a hand-over to a named candidate, and then for one to any candidate.
func (s *stage) handOvers() error {
	for _, named := range []bool{true, false} {
		s.settle() // the last leader waits for a head start first
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

// after returns the next candidate by number.
func (s *stage) after(c *candidate) *candidate { return s.candidates[c.number%len(s.candidates)] }

// handOver asks the leader to hand over, and returns the next leader.
func (s *stage) handOver(c *candidate, to string) (*candidate, error) {
	old, _ := s.watch.reigns.Last()
	at := s.note("%s: is asked to hand over to %q", c.id(), to)
	if err := s.askToHandOver(s.b.ctx, to); err != nil {
		return nil, err
	}
	if err := s.succeed(at, old); err != nil {
		return nil, err
	}
	took, _, err := s.leader()
	return took, err
}

// handOverToFrozen stops the guard of a follower, and asks the leader to hand over to that
// follower. The follower must notice that, and let others lead or start another guard.
func (s *stage) handOverToFrozen() error {
	c, _, err := s.leader()
	if err != nil {
		return err
	}
	to := s.after(c)
	s.note("%s: %s", to.id(), freezeGuard.name)
	thaw, err := freezeGuard.begin(to)
	if err != nil {
		return err
	}
	_, err = s.handOver(c, to.id())
	return errors.Join(err, thaw())
}

// askToHandOver runs tenure hand-over, as an operator does.
func (s *stage) askToHandOver(ctx context.Context, to string) error {
	address := s.server.Addresses()[0]
	args := []string{"hand-over", "--store", s.b.kind().URL(address), "--election", election}
	if to != "" {
		args = append(args, "--to", to)
	}
	cmd := exec.CommandContext(ctx, s.tenure, args...)
	cmd.Env = environment(s.mark, s.b.kind().Environ(address)...)
	crew.Separate(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("hand-over: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// timely records a worker that began too late.
func (s *stage) timely(at int64, next reign) {
	if took := time.Duration(next.began - at); took > s.bound() {
		s.late("the next worker began after %v, later than %v", took, s.bound())
	}
}
