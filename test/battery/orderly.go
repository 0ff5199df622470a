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
func (s *stage) stopLeader() {
	c, old := s.leader()
	s.succeed(s.stopAndCheck(c), old)
}

// stopLeaderUnheard stops the leader while it cannot reach the server, so that its release is lost.
func (s *stage) stopLeaderUnheard() {
	c, _ := s.leader()
	s.note("%s: %s", c.id(), blackhole.name)
	end := must(blackhole.begin(c))
	s.sleep(s.some(s.lease / 2))
	s.stopLeader()
	check(end())
}

// stopAndCheck asks a tenure that leads to stop, and waits until it has ended.
func (s *stage) stopAndCheck(c *candidate) (at int64) {
	guard := must(c.guard())
	at = s.note("%s: is asked to stop", c.id())
	check(c.Stop())
	s.ends(c, guard, s.row.code)
	return at
}

// ends waits until a tenure has ended by itself. It checks the exit code and the remaining
// processes.
func (s *stage) ends(c *candidate, guard, want int) {
	ctx, cancel := s.patience()
	defer cancel()
	check(c.wait(ctx))
	code := c.Code()
	s.note("%s: has ended with exit code %d", c.id(), code)
	if code != want {
		s.wrong("tenure of %s ended with exit code %d, not %d", c.id(), code, want)
	}
	check(s.checkLeftovers(c, guard))
}

// finale lets all remaining candidates lead in turn, after any fault, and stop.
func (s *stage) finale() {
	defer s.checkCodes()
	for {
		left := s.running()
		if left == 0 {
			return
		}
		c, old := s.leader()
		at := machine.Now()
		if c.running() { // on a busy machine it may have lost the lease and ended
			if at = s.stopAndCheck(c); left == 1 {
				return
			}
		}
		next, err := s.nextOfRunning(old)
		switch {
		case err == nil:
			s.timely(at, next)
		case s.running() > 0 || !s.row.lingers:
			check(fmt.Errorf("when %s had left: %w", c.id(), err))
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
func (s *stage) exits() {
	guards := map[*candidate]int{}
	old := s.next(reign{}) // the first, which may have ended by now
	for {
		c := must(s.candidate(old))
		guard, err := c.guard()
		if !errors.Is(err, errNoGuard) { // the worker may have ended
			check(err)
		}
		guards[c] = guard
		if len(guards) == len(s.candidates) {
			break
		}
		next := s.next(old)
		s.timed(s.watch.lastActOf(old), old, next)
		old = next
	}
	for c, guard := range guards { // tenure ends later than a command that failed soon
		s.ends(c, guard, s.row.code)
	}
}

// killCommand kills the command itself. For tenure that is an end of the command like any other.
func (s *stage) killCommand() {
	s.settle()
	c, old := s.leader()
	guard := must(c.guard())
	at := s.note("%s: its command is killed", c.id())
	check(crew.Kill(old.root))
	s.ends(c, guard, codeKilled)
	s.succeed(at, old)
}

// handOvers asks for a hand-over to a named candidate, and then for one to any candidate.
func (s *stage) handOvers() {
	for _, named := range []bool{true, false} {
		s.settle() // the last leader waits for a head start first
		c, _ := s.leader()
		to := ""
		if named {
			to = s.after(c).id()
		}
		if took := s.handOver(c, to); took == c || named && took.id() != to {
			s.wrong("%s was to hand over to %q, and %s leads", c.id(), to, took.id())
		}
	}
}

// after returns the next candidate by number.
func (s *stage) after(c *candidate) *candidate { return s.candidates[c.number%len(s.candidates)] }

// handOver asks the leader to hand over, and returns the next leader.
func (s *stage) handOver(c *candidate, to string) *candidate {
	old, _ := s.watch.reigns.Last()
	at := s.note("%s: is asked to hand over to %q", c.id(), to)
	check(s.askToHandOver(s.b.ctx, to))
	s.succeed(at, old)
	took, _ := s.leader()
	return took
}

// handOverToFrozen stops the guard of a follower, and asks the leader to hand over to that
// follower. The follower must notice that, and let others lead or start another guard.
func (s *stage) handOverToFrozen() {
	c, _ := s.leader()
	to := s.after(c)
	s.note("%s: %s", to.id(), freezeGuard.name)
	thaw := must(freezeGuard.begin(to))
	s.handOver(c, to.id())
	check(thaw())
}

// askToHandOver runs tenure hand-over, as an operator does.
func (s *stage) askToHandOver(ctx context.Context, to string) error {
	address := s.server.Addresses()[0]
	args := []string{"hand-over", "--store", s.row.kind().URL(address), "--election", election}
	if to != "" {
		args = append(args, "--to", to)
	}
	cmd := exec.CommandContext(ctx, s.tenure, args...)
	cmd.Env = environment(s.mark, s.row.kind().Environ(address)...)
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
