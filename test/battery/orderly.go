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
	"github.com/tenure-go/tenure/test/internal/figures"
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
	return s.stopWith(c, c.awaitGuard())
}

// stopWith is stopAndCheck for a tenure with this guard, or none if it is 0.
func (s *stage) stopWith(c *candidate, guard int) (at int64) {
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
	if s.row.agent {
		check(c.endWorker())
		return
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
	guard := c.awaitGuard()
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
		s.handOver(to)
	}
}

// after returns the next candidate by number.
func (s *stage) after(c *candidate) *candidate { return s.candidates[c.number%len(s.candidates)] }

// handOver asks the leader to hand over until another one leads: the named one, unless that is
// empty. A head start promises nothing: on a slow disk, another candidate may claim first.
func (s *stage) handOver(to string) {
	for c, old := s.leader(); c.id() != to; c, old = s.leader() {
		if at, ok := s.tryToHandOver(c, to); ok {
			s.succeed(at, old)
			return
		}
	}
}

// tryToHandOver asks a leader to hand over. If the order is refused, it waits until the others
// follow.
func (s *stage) tryToHandOver(c *candidate, to string) (at int64, ok bool) {
	at = s.note("%s: is asked to hand over to %q", c.id(), to)
	err := s.askToHandOver(s.b.ctx, to)
	if err == nil {
		return at, true
	}
	if _, refused := errors.AsType[*exec.ExitError](err); !refused {
		check(err)
	}
	s.note("%v", err)
	s.settle()
	return at, false
}

// handOverToFrozen stops the guard of a follower, and asks the leader to hand over to that
// follower. The follower must notice that, and let others lead or start another guard.
func (s *stage) handOverToFrozen() {
	c, _ := s.leader()
	to := s.after(c)
	s.note("%s: %s", to.id(), freezeGuard.name)
	thaw := must(freezeGuard.begin(to))
	s.handOver(to.id())
	check(thaw())
}

// askToHandOver runs tenure hand-over, as an operator does. In rows of two versions it is that of
// the leader, since an SQL store hides renewals of the former version from the other one. There the
// order is not conditional, since a candidate of the former version cannot accept it.
func (s *stage) askToHandOver(ctx context.Context, to string) error {
	address, tenure := s.server.Addresses()[0], s.tenure
	if s.row.former {
		c, _ := s.leader()
		tenure = c.tenure
	}
	args := []string{"hand-over", "--store", s.row.kind().URL(address), "--election", election}
	if to != "" {
		args = append(args, "--to", to)
	}
	if s.row.former && tenure == s.tenure {
		args = append(args, "--force")
	}
	cmd := exec.CommandContext(ctx, tenure, args...)
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

// random injects faults into each candidate and the server at independent times, so several faults
// overlap. Then it checks that a candidate leads again.
func (s *stage) random() {
	d := s.b.length
	switch {
	case s.control:
		d = 10 * s.lease
	case d == 0:
		d = pick(s.b, 20*time.Second, 10*time.Minute)
	}
	ctx, cancel := context.WithTimeout(s.b.ctx, d)
	defer cancel()
	errs := make([]error, len(s.candidates)+1)
	var all sync.WaitGroup
	for i, c := range s.candidates {
		all.Go(func() { errs[i] = s.faultCandidate(ctx, c) })
	}
	all.Go(func() { errs[len(s.candidates)] = s.faultServer(ctx) })
	all.Go(func() { s.askForHandOvers(ctx) })
	all.Wait()
	check(errors.Join(errs...))
	s.recovered(d)
}

// faultCandidate injects faults into a candidate, leader or not, and starts it again when it has
// ended.
func (s *stage) faultCandidate(ctx context.Context, c *candidate) error {
	faults := []fault{crash, crashBoth, crashGuard, freeze, freezeBoth, freezeGuard, crashFreeze, freezeCrash, freezeGuardLost,
		blackhole, mute, cut, delay, asked, commandKilled}
	if s.row.agent {
		faults = agentFaults
	}
	for sleep(ctx, s.lease/2+s.some(3*s.lease/2)) {
		f := faults[s.some(time.Duration(len(faults)-1))]
		s.note("%s: %s", c.id(), f.name)
		end, err := f.begin(c)
		if errors.Is(err, errNoGuard) { // the guard was just killed, or no command runs
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", c.id(), f.name, err)
		}
		if end != nil {
			sleep(ctx, s.some(5*s.lease/2))
			if _, err := s.relieve(c, end); err != nil {
				return err
			}
		}
		if err := s.startAgain(ctx, c); err != nil {
			return err
		}
	}
	return s.startAgain(s.b.ctx, c)
}

// asked is an orderly end of tenure. commandKilled is the death of the command. Neither has an end.
var (
	asked         = fault{name: "is asked to stop", begin: func(c *candidate) (func() error, error) { return nil, c.Stop() }}
	commandKilled = fault{name: "its command is killed", begin: func(c *candidate) (func() error, error) {
		pid, err := c.command()
		if err != nil || pid == 0 {
			return nil, err
		}
		return nil, crew.Kill(pid)
	}}
)

// startAgain starts a tenure again if it has ended.
func (s *stage) startAgain(ctx context.Context, c *candidate) error {
	sleep(ctx, s.some(s.lease))
	if c.running() {
		return nil
	}
	return s.restartTenure(c)
}

// restartTenure starts a tenure again that has ended.
func (s *stage) restartTenure(c *candidate) error {
	s.checkCode(c)
	s.note("%s: is started again", c.id())
	return c.start()
}

// faultServer pauses or restarts the server now and then.
func (s *stage) faultServer(ctx context.Context) error {
	for sleep(ctx, 2*s.lease+s.some(8*s.lease)) {
		f := outage
		if s.even() {
			f = hang
		}
		end, err := f.begin(s.candidates[0])
		if err != nil {
			return err
		}
		s.note("the server: %s, but for less time", f.name)
		sleep(ctx, s.some(3*s.lease/2))
		s.note("the server: the end of that")
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// askForHandOvers asks for hand-overs now and then. Faults can affect the asking process, so its
// outcome does not matter.
func (s *stage) askForHandOvers(ctx context.Context) {
	for sleep(ctx, s.lease+s.some(6*s.lease)) {
		asking, cancel := context.WithTimeout(ctx, s.lease)
		err := s.askToHandOver(asking, "")
		cancel()
		s.note("an operator asks for a hand-over: %v", err)
	}
}

// recovered checks that a worker acts within the bound after the end of the faults, and that there
// were enough changes of leader.
func (s *stage) recovered(d time.Duration) {
	healed := s.note("all faults are over")
	at := must(s.actAfter(healed))
	if took := time.Duration(at - healed); took > s.bound() {
		s.late("a worker acted again %v after the end of all faults, later than %v", took, s.bound())
	}
	begun, least := s.watch.reigns.Mark(), int(d/(8*s.lease))
	s.figure("workers that began in "+d.String(), fmt.Sprint(begun), fmt.Sprintf("at least %d", least), figures.Within(begun >= least))
}

// actAfter waits for an act after a moment. Meanwhile it starts each tenure again that ends: after
// the end of its command, a tenure runs on for a while.
func (s *stage) actAfter(moment int64) (int64, error) {
	ctx, cancel := context.WithCancelCause(s.b.ctx)
	var all sync.WaitGroup
	for _, c := range s.candidates {
		all.Go(func() {
			if err := c.wait(ctx); err != nil {
				return
			}
			if err := s.restartTenure(c); err != nil {
				cancel(err)
			}
		})
	}
	at, err := s.watch.awaitAct(ctx, moment)
	if err != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	cancel(nil)
	all.Wait()
	return at, err
}

// restarts restarts the server again and again, first at once and then after a while. The leader
// must survive the restarts at once. Whether it survives a longer outage depends on the begin of
// the outage: a renewal is tried when a third of the lease is over, and then a few times until the
// deadline.
func (s *stage) restarts() {
	for _, lot := range []struct {
		what    string
		most    time.Duration
		promise bool
	}{
		{"at once", 0, true},
		{"after up to a quarter of the lease", s.lease / 4, false},
	} {
		n := pick(s.b, 3, 10)
		changes, down := s.restartTimes(n, lot.most)
		bound, v := "", figures.None
		if lot.promise {
			bound, v = "0", figures.Within(changes == 0)
		}
		s.figure(fmt.Sprintf("started again %s: changes of leader in %d restarts", lot.what, n), fmt.Sprint(changes), bound, v)
		s.figure("and the server was away for", down.String(), "", figures.None)
	}
}

// restartTimes restarts the server n times. It returns how often another worker began, and how long
// the server was down.
func (s *stage) restartTimes(n int, most time.Duration) (changes int, down figures.Dist) {
	s.settle()
	before := s.watch.reigns.Mark()
	for i := range n {
		s.note("the server is restarted, %d of %d", i+1, n)
		down = append(down, s.restart(s.some(most)))
		s.note("the server is back")
		s.sleep(s.lease/2 + s.some(s.lease/2))
	}
	s.sleep(s.bound() - s.lease/2)
	return s.watch.reigns.Mark() - before, down
}

// restart kills the server and starts it again on its files and port, not before the time after. It
// returns how long the server was down.
func (s *stage) restart(after time.Duration) time.Duration {
	began := time.Now()
	check(s.server.Kill())
	s.sleep(after)
	check(s.server.Start())
	return time.Since(began)
}
