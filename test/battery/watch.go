package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/witness"
)

// watch follows the journal of a stage while it is written.
type watch struct {
	reader *witness.Reader
	begins func(reign) // called for each new reign, before the reign is visible to others
	stop   chan struct{}
	done   sync.WaitGroup

	records crew.Journal[witness.Record]
	reigns  crew.Journal[reign]
}

// reign is one run of a worker. From its first act on, no process with a lower token may act.
type reign struct {
	token     uint64
	candidate int
	root      int   // the process that tenure started
	began     int64 // its first act
	number    int   // from 1, in the order of the journal
}

// glance is the time between two reads of the journal.
const glance = 2 * time.Millisecond

// follow starts to follow a journal. Call end to stop.
func follow(path string, begins func(reign)) (*watch, error) {
	r, err := witness.Follow(path)
	if err != nil {
		return nil, err
	}
	w := &watch{reader: r, begins: begins, stop: make(chan struct{})}
	w.done.Go(w.run)
	return w, nil
}

func (w *watch) run() {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		w.read()
		select {
		case <-tick.C:
		case <-w.stop:
			w.read()
			return
		}
	}
}

func (w *watch) read() {
	news, err := w.reader.Next()
	if len(news) == 0 && err == nil {
		return
	}
	begun := reignsIn(news, w.reigns.Mark())
	for _, r := range begun {
		w.begins(r)
	}
	w.records.Add(news...) // before the reigns, whose first acts are among them
	w.reigns.Add(begun...)
	if err != nil {
		w.records.Fail(err)
		w.reigns.Fail(err)
	}
}

// reignsIn returns the reigns that begin in the records. Before is the number of earlier reigns.
func reignsIn(records []witness.Record, before int) []reign {
	var all []reign
	for _, r := range records {
		if r.What == witness.Began {
			number := before + len(all) + 1
			all = append(all, reign{token: r.Token, candidate: int(r.Candidate), root: int(r.Root), began: r.At, number: number})
		}
	}
	return all
}

// end stops following and returns the whole journal.
func (w *watch) end() ([]witness.Record, error) {
	close(w.stop)
	w.done.Wait()
	return w.records.Since(0), errors.Join(w.records.Failed(), w.reader.Close())
}

// await waits for the reign after another one. The first reign follows the zero reign.
func (w *watch) await(ctx context.Context, old reign) (reign, error) {
	return w.reigns.Await(ctx, old.number, "a new worker", func(reign) bool { return true })
}

// awaitAsked returns the time when the worker of a reign was asked to stop. It returns 0 if another
// reign began first: on a busy machine the worker may be killed before it records the request.
func (w *watch) awaitAsked(ctx context.Context, old reign) (at int64, err error) {
	begun := 0
	r, err := w.records.Await(ctx, 0, "the worker to be asked to stop", func(r witness.Record) bool {
		if r.What == witness.Began {
			begun++
		}
		return begun > old.number || r.What == witness.Asked && int(r.PID) == old.root
	})
	if r.What != witness.Asked {
		return 0, err
	}
	return r.At, err
}

// lastActOf returns the time of the last act of a reign so far, by the worker or its children.
func (w *watch) lastActOf(old reign) int64 {
	r, _ := crew.Last(w.records.Since(0), func(r witness.Record) bool {
		return int(r.Root) == old.root && r.Token == old.token && r.What == witness.Act
	})
	return r.At
}

// awaitAct returns the time of the first act of any worker after a moment.
func (w *watch) awaitAct(ctx context.Context, after int64) (at int64, err error) {
	r, err := w.records.Await(ctx, 0, "an act", func(r witness.Record) bool { return r.What == witness.Act && r.At > after })
	return r.At, err
}

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
