package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// The names on the server of every stage.
const (
	bucket   = "ELECTIONS"
	election = "battery"
)

// crew is the number of candidates of a stage.
const crew = 3

// stage is the place of one run of a row: a server, candidates, and their files.
type stage struct {
	b          *battery
	row        row
	tenure     string // the binary
	control    bool   // it has a flaw
	lease      time.Duration
	dir        string
	mark       string
	server     server
	candidates []*candidate
	watch      *watch

	mu   sync.Mutex
	rand *rand.Rand
	told []string // the faults and their targets, for people
	seen outcome
}

// set makes a stage and starts all its processes. In every case conclude ends it.
func (b *battery) set(r row, tenure, name string, control bool) (*stage, error) {
	s := &stage{
		b: b, row: r, tenure: tenure, control: control, lease: b.lease, dir: filepath.Join(b.dir, name),
		mark: fmt.Sprintf("%d-%s", os.Getpid(), name), rand: b.generator(),
	}
	return s, s.begin()
}

func (s *stage) begin() (err error) {
	if err = os.MkdirAll(filepath.Join(s.dir, "server"), 0o700); err != nil {
		return err
	}
	j, err := witness.Open(s.journal()) // so that there is one to follow
	if err != nil {
		return err
	}
	if err := j.Close(); err != nil {
		return err
	}
	if s.watch, err = follow(s.journal(), s.inspect); err != nil {
		return err
	}
	if s.server, err = kinds[s.b.store].start(filepath.Join(s.dir, "server")); err != nil {
		return err
	}
	for range crew {
		if err := s.hire(s.tenure); err != nil {
			return err
		}
	}
	_, err = s.watch.await(s.b.ctx, reign{})
	return err
}

func (s *stage) journal() string { return filepath.Join(s.dir, "journal") }

// hire adds a candidate, of a binary, and starts it.
func (s *stage) hire(tenure string) error {
	r, err := s.way()
	if err != nil {
		return err
	}
	c := &candidate{stage: s, number: len(s.candidates) + 1, tenure: tenure, relay: r}
	s.candidates = append(s.candidates, c)
	return c.start()
}

// conclude ends everything, and judges the run.
func (s *stage) conclude(err error) outcome {
	s.strike()
	var records []witness.Record
	if s.watch != nil {
		var failed error
		records, failed = s.watch.end()
		err = errors.Join(err, failed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.seen
	o.runs, o.acts = 1, witness.Judge(records)
	if err != nil {
		o.errs = append(o.errs, err)
	}
	return o
}

// clearing is how long the processes of a stage may take to die of SIGKILL.
const clearing = time.Minute

// strike leaves no process behind.
func (s *stage) strike() {
	for end := time.Now().Add(clearing); ; {
		all, err := processesOf(s.mark)
		if err != nil || len(all) == 0 || time.Now().After(end) {
			break
		}
		for _, p := range all {
			_ = kill(p.pid)
		}
		time.Sleep(glance)
	}
	for _, c := range s.candidates {
		if c.cmd != nil {
			<-c.ended
		}
		if c.relay != nil {
			c.relay.Close()
		}
	}
	if s.server != nil {
		s.server.End()
	}
}

// bound is how soon after a fault the next worker should begin.
func (s *stage) bound() time.Duration { return s.b.bound() }

// patience bounds a wait by the battery's own time limit. A control has less, and is tried again
// then: with a flaw the event may never come.
func (s *stage) patience() (context.Context, context.CancelFunc) {
	if s.control {
		return context.WithTimeout(s.b.ctx, 2*s.bound())
	}
	return s.b.ctx, func() {}
}

// next waits for the reign after another.
func (s *stage) next(old reign) (reign, error) {
	ctx, cancel := s.patience()
	defer cancel()
	return s.watch.await(ctx, old)
}

// asked waits until the worker of a reign is asked to stop.
func (s *stage) asked(old reign) (at int64, err error) {
	ctx, cancel := s.patience()
	defer cancel()
	return s.watch.awaitAsked(ctx, old)
}

// leader is the candidate that runs the latest worker.
func (s *stage) leader() (*candidate, reign, error) {
	r, _ := s.watch.last()
	c, err := s.candidate(r)
	return c, r, err
}

func (s *stage) candidate(r reign) (*candidate, error) {
	if r.candidate < 1 || r.candidate > len(s.candidates) {
		return nil, fmt.Errorf("nobody known leads: %+v", r)
	}
	return s.candidates[r.candidate-1], nil
}

// settle lets the others follow, and goes on at some moment between two renewals.
func (s *stage) settle() { s.sleep(s.lease/2 + s.some(s.lease/2)) }

// sleep ends early with the battery.
func (s *stage) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.b.ctx.Done():
	}
}

// some is a time of at most d.
func (s *stage) some(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.rand.Int64N(int64(d) + 1))
}

// even is a toss of a coin.
func (s *stage) even() bool { return s.some(1) == 0 }

// tell notes an action on a candidate, and returns its time.
func (s *stage) tell(format string, args ...any) int64 {
	at := machine.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, fmt.Sprintf("%.3f  ", seconds(at))+fmt.Sprintf(format, args...))
	return at
}

// wrong keeps that a promise was broken.
func (s *stage) wrong(format string, args ...any) {
	s.tell("WRONG: "+format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.wrong = append(s.seen.wrong, fmt.Sprintf(format, args...))
}

// late keeps that something took longer than it should.
func (s *stage) late(format string, args ...any) {
	s.tell("late: "+format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.late = append(s.seen.late, fmt.Sprintf(format, args...))
}

// figure keeps a measure beside those of all rows.
func (s *stage) figure(what, value, bound string, v figures.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.figures = append(s.seen.figures, figure{what, value, bound, v})
}

func seconds(at int64) float64 { return time.Duration(at).Seconds() }
