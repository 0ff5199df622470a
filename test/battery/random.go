package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// random lets faults strike each candidate and the server, each in its own rhythm and so several at
// a time, and then checks that all recover.
func (s *stage) random() error {
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
		all.Go(func() { errs[i] = s.torment(ctx, c) })
	}
	all.Go(func() { errs[crew] = s.disturb(ctx) })
	all.Go(func() { s.meddle(ctx) })
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.recovered(d)
}

// torment lets faults strike a candidate, leader or not, which is started again when it has ended.
func (s *stage) torment(ctx context.Context, c *candidate) error {
	faults := []fault{crash, crashBoth, crashGuard, freeze, freezeBoth, freezeGuard, crashFreeze, freezeCrash, freezeGuardLost,
		blackhole, mute, cut, delay, asked, bereaved}
	for s.wait(ctx, s.lease/2+s.some(3*s.lease/2)) {
		f := faults[s.some(time.Duration(len(faults)-1))]
		s.tell("%s: %s", c.id(), f.name)
		end, err := f.begin(c)
		if errors.Is(err, errNoGuard) { // it was killed just now, or there is no command
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", c.id(), f.name, err)
		}
		if end != nil {
			s.wait(ctx, s.some(5*s.lease/2))
			if _, err := s.relieve(c, end); err != nil {
				return err
			}
		}
		if err := s.revive(ctx, c); err != nil {
			return err
		}
	}
	return s.revive(s.b.ctx, c)
}

// asked is the end in good order, bereaved that of the command. Neither is undone.
var (
	asked    = fault{name: "is asked to stop", begin: func(c *candidate) (func() error, error) { return nil, c.stop() }}
	bereaved = fault{name: "its command is killed", begin: func(c *candidate) (func() error, error) {
		pid, err := c.command()
		if err != nil || pid == 0 {
			return nil, err
		}
		return nil, kill(pid)
	}}
)

// revive starts a tenure again that has ended.
func (s *stage) revive(ctx context.Context, c *candidate) error {
	s.wait(ctx, s.some(s.lease))
	if c.running() {
		return nil
	}
	s.tell("%s: is started again", c.id())
	return c.start()
}

// disturb stops or restarts the server now and then.
func (s *stage) disturb(ctx context.Context) error {
	for s.wait(ctx, 2*s.lease+s.some(8*s.lease)) {
		f := outage
		if s.even() {
			f = hang
		}
		end, err := f.begin(s.candidates[0])
		if err != nil {
			return err
		}
		s.tell("the server: %s, but for less time", f.name)
		s.wait(ctx, s.some(3*s.lease/2))
		s.tell("the server: the end of that")
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// meddle asks for hand-overs. The asking process may meet any of the faults, so its outcome does
// not matter.
func (s *stage) meddle(ctx context.Context) {
	for s.wait(ctx, s.lease+s.some(6*s.lease)) {
		asking, cancel := context.WithTimeout(ctx, s.lease)
		err := s.askToHandOver(asking, "")
		cancel()
		s.tell("somebody asks for a hand-over: %v", err)
	}
}

// wait reports whether the time has passed before the context ended.
func (s *stage) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// recovered: when the faults are over a candidate must lead within the bound, and there must have
// been faults.
func (s *stage) recovered(d time.Duration) error {
	healed := s.tell("all faults are over")
	at, err := s.watch.awaitAct(s.b.ctx, healed)
	if err != nil {
		return err
	}
	if took := time.Duration(at - healed); took > s.bound() {
		s.late("somebody worked again %v after the end of all faults, later than %v", took, s.bound())
	}
	begun, least := s.watch.mark(), int(d/(8*s.lease))
	s.figure("workers that began in "+d.String(), fmt.Sprint(begun), fmt.Sprintf("at least %d", least), figures.Within(begun >= least))
	return nil
}
