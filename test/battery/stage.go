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

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/agentworker"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/halt"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// election is the name of the election of every stage.
const election = agentworker.Election

// members is the number of candidates of a stage.
const members = 3

// stage holds one run of a row: a server, candidates, and their files.
type stage struct {
	b          *battery
	row        row
	tenure     string // the binary
	control    bool   // the binary has a flaw
	lease      time.Duration
	dir        string
	mark       string
	server     rig.Running
	candidates []*candidate
	watch      *watch

	mu    sync.Mutex
	rand  *rand.Rand
	notes []string // the faults and their targets, for people
	seen  outcome
}

// set creates a stage and starts all its processes. Call conclude also after an error.
func (b *battery) set(r row, tenure, name string, control bool) (*stage, error) {
	s := &stage{
		b: b, row: r, tenure: tenure, control: control, lease: b.lease, dir: filepath.Join(b.dir, name),
		mark: fmt.Sprintf("%d-%s", os.Getpid(), name), rand: b.generator(),
	}
	return s, s.begin()
}

func (s *stage) begin() (err error) {
	defer halt.Catch(&err)
	check(os.MkdirAll(filepath.Join(s.dir, "server"), 0o700))
	check(must(witness.Open(s.journal())).Close()) // create the file before follow opens it
	s.watch = must(follow(s.journal(), s.row.agent, s.inspect))
	s.server, err = s.row.kind().Start(s.b.ctx, filepath.Join(s.dir, "server"))
	check(err)
	tenure := s.tenure
	if s.row.former {
		tenure = must(s.b.former())
	}
	for range members {
		s.hire(tenure)
	}
	must(s.nextOfRunning(reign{}))
	return nil
}

// check ends the run of a row if there is an error.
func check(err error) { halt.On(err) }

// must returns the value, or ends the run of a row if there is an error.
func must[T any](v T, err error) T { return halt.Unless(v, err) }

func (s *stage) journal() string { return filepath.Join(s.dir, "journal") }

// hire adds a candidate that runs a tenure binary, and starts it.
func (s *stage) hire(tenure string) {
	c := &candidate{stage: s, number: len(s.candidates) + 1, tenure: tenure}
	if !s.row.kind().Files {
		c.relay = must(relay.New("nats://" + s.server.Addresses()[0]))
	}
	s.candidates = append(s.candidates, c)
	check(c.start())
}

// conclude ends all processes, and judges the run.
func (s *stage) conclude(err error) outcome {
	s.killAll()
	var records []witness.Record
	if s.watch != nil {
		var failed error
		records, failed = s.watch.end()
		err = errors.Join(err, failed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.seen
	acts, failed := s.judge(records)
	o.runs, o.acts, err = 1, acts, errors.Join(err, failed)
	if err != nil {
		o.errs = append(o.errs, err)
	}
	if s.watch != nil {
		s.second(&o)
	}
	return o
}

// clearing is the time limit for killing all processes of a stage.
const clearing = time.Minute

// killAll kills all processes of the stage.
func (s *stage) killAll() {
	for end := time.Now().Add(clearing); ; {
		all, err := processesOf(s.mark)
		if err != nil || len(all) == 0 || time.Now().After(end) {
			break
		}
		for _, p := range all {
			_ = crew.Kill(p.pid)
		}
		time.Sleep(glance)
	}
	for _, c := range s.candidates {
		if c.Process != nil {
			<-c.ended
		}
		if c.worker != nil {
			<-c.worker.Ended()
		}
		if c.relay != nil {
			c.relay.Close()
		}
	}
	if s.server != nil {
		s.server.End()
	}
}

// bound returns the longest time from a fault to the next worker.
func (s *stage) bound() time.Duration { return s.b.bound(s.row) }

// patience bounds a wait by the battery's own time limit. A control has a shorter limit, because
// with a flaw the event may never come. Then the control is repeated.
func (s *stage) patience() (context.Context, context.CancelFunc) {
	if s.control {
		return context.WithTimeout(s.b.ctx, 2*s.bound())
	}
	return s.b.ctx, func() {}
}

// next waits for the reign after another.
func (s *stage) next(old reign) reign {
	ctx, cancel := s.patience()
	defer cancel()
	return must(s.watch.await(ctx, old))
}

// asked waits until the worker of a reign is asked to stop.
func (s *stage) asked(old reign) (at int64) {
	ctx, cancel := s.patience()
	defer cancel()
	return must(s.watch.awaitAsked(ctx, old))
}

// leader returns the candidate that runs the latest worker.
func (s *stage) leader() (*candidate, reign) {
	r, _ := s.watch.reigns.Last()
	return must(s.candidate(r)), r
}

func (s *stage) candidate(r reign) (*candidate, error) {
	if r.candidate < 1 || r.candidate > len(s.candidates) {
		return nil, fmt.Errorf("an unknown candidate leads: %+v", r)
	}
	return s.candidates[r.candidate-1], nil
}

// settle waits until the others follow, and then until a random moment between two renewals.
func (s *stage) settle() { s.sleep(s.lease/2 + s.some(s.lease/2)) }

// sleep ends early with the battery.
func (s *stage) sleep(d time.Duration) { sleep(s.b.ctx, d) }

// sleep waits for a time, and returns false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	rig.Sleep(ctx, d)
	return ctx.Err() == nil
}

// some returns a random time of at most d.
func (s *stage) some(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.rand.Int64N(int64(d) + 1))
}

// even returns true in half of the calls, at random.
func (s *stage) even() bool { return s.some(1) == 0 }

// note adds an action or an event to the notes, and returns its time.
func (s *stage) note(format string, args ...any) int64 {
	at := machine.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf("%.3f  ", seconds(at))+fmt.Sprintf(format, args...))
	return at
}

// wrong records a broken promise.
func (s *stage) wrong(format string, args ...any) {
	s.note("WRONG: "+format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.wrong = append(s.seen.wrong, fmt.Sprintf(format, args...))
}

// late records an event that took longer than it should.
func (s *stage) late(format string, args ...any) {
	s.note("late: "+format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.late = append(s.seen.late, fmt.Sprintf(format, args...))
}

// figure records a measure that only this row has.
func (s *stage) figure(what, value, bound string, v figures.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.figures = append(s.seen.figures, figure{what, value, bound, v})
}

func seconds(at int64) float64 { return time.Duration(at).Seconds() }

// watch follows the journal of a stage while it is written.
type watch struct {
	reader *witness.Reader
	begins func(reign) // called for each new reign, before the reign is visible to others
	// onlyActs is set if workers do not write when they begin.
	onlyActs bool
	highest  uint64 // the highest token so far
	stop     chan struct{}
	done     sync.WaitGroup

	records crew.Journal[witness.Record]
	reigns  crew.Journal[reign]
}

// reign is one run of a worker, or one term of a worker of an agent. From its first act on, no
// process with a lower token may act.
type reign struct {
	token     uint64
	candidate int
	root      int   // the process that tenure started, or the worker of an agent
	began     int64 // its first act
	number    int   // from 1, in the order of the journal
}

// glance is the time between two reads of the journal.
const glance = 2 * time.Millisecond

// follow starts to follow a journal. Call end to stop.
func follow(path string, onlyActs bool, begins func(reign)) (*watch, error) {
	r, err := witness.Follow(path)
	if err != nil {
		return nil, err
	}
	w := &watch{reader: r, begins: begins, onlyActs: onlyActs, stop: make(chan struct{})}
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
	begun := w.reignsIn(news)
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

// reignsIn returns the reigns that begin in new records. A worker of an agent writes only acts: one
// with a higher token than all before begins a reign.
func (w *watch) reignsIn(records []witness.Record) []reign {
	var all []reign
	for _, r := range records {
		begins := r.What == witness.Began
		if w.onlyActs {
			begins = r.Token > w.highest
		}
		if begins {
			number := w.reigns.Mark() + len(all) + 1
			all = append(all, reign{token: r.Token, candidate: int(r.Candidate), root: int(r.Root), began: r.At, number: number})
		}
		w.highest = max(w.highest, r.Token)
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
