package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/test/internal/figures"
)

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
