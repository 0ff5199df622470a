package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// restarts restarts the server again and again, first at once and then after a while. The leader
// must survive the restarts at once. Whether it survives a longer outage depends on the begin of
// the outage: a renewal is tried when a third of the lease is over, and then a few times until the
// deadline.
func (s *stage) restarts() error {
	for _, lot := range []struct {
		what    string
		most    time.Duration
		promise bool
	}{
		{"at once", 0, true},
		{"after up to a quarter of the lease", s.lease / 4, false},
	} {
		n := pick(s.b, 3, 10)
		changes, down, err := s.restartTimes(n, lot.most)
		if err != nil {
			return err
		}
		bound, v := "", figures.None
		if lot.promise {
			bound, v = "0", figures.Within(changes == 0)
		}
		s.figure(fmt.Sprintf("started again %s: changes of leader in %d restarts", lot.what, n), fmt.Sprint(changes), bound, v)
		s.figure("and the server was away for", down.String(), "", figures.None)
	}
	return nil
}

// restartTimes restarts the server n times. It returns how often another worker began, and how long
// the server was down.
func (s *stage) restartTimes(n int, most time.Duration) (changes int, down figures.Dist, err error) {
	s.settle()
	before := s.watch.mark()
	for i := range n {
		s.note("the server is restarted, %d of %d", i+1, n)
		took, err := s.restart(s.some(most))
		if err != nil {
			return 0, nil, err
		}
		s.note("the server is back")
		down = append(down, took)
		s.sleep(s.lease/2 + s.some(s.lease/2))
	}
	s.sleep(s.bound() - s.lease/2)
	return s.watch.mark() - before, down, nil
}

// restart kills the server and starts it again on its files and port, not before the time after. It
// returns how long the server was down.
func (s *stage) restart(after time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := s.server.Kill(); err != nil {
		return 0, err
	}
	s.sleep(after)
	err := s.server.Start()
	return time.Since(began), err
}
