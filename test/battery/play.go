package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/halt"
)

// job is a row, or its control with a flaw. It is played a number of times.
type job struct {
	row   row
	flaw  *flaw // nil unless the job is a control
	runs  int
	begun int
	seen  outcome
	// disturbed is the number of runs that were repeated.
	disturbed int
	evidence  string // of the runs that failed, as text
}

func (j *job) name() string {
	if j.flaw != nil {
		return j.row.name + "-" + j.flaw.name
	}
	return j.row.name
}

// passed reports whether the row passed, or whether the flaw of a control showed.
func (j *job) passed() bool {
	if j.flaw != nil {
		return j.flaw.shows(j.seen) && len(j.seen.unsafe) == 0
	}
	return j.seen.passed()
}

// play plays rows and their controls, several at the same time, and then those that must run alone.
func (b *battery) play(chosen []row) *results {
	res := &results{battery: b, jobs: b.jobs(chosen)}
	b.builds(res.jobs)
	around := figures.Listen()
	b.sideBySide(res.jobs)
	for _, j := range res.jobs {
		if b.alone(j) {
			for range j.runs {
				b.perform(j)
			}
		}
	}
	for _, j := range res.jobs {
		if j.seen.runs == 0 {
			j.seen.errs = append(j.seen.errs, errNotPlayed)
		}
	}
	res.noise = around.End()
	return res
}

// builds builds what the jobs need, before the measurements, because it keeps the machine busy. A
// build mostly links, on one processor. If one fails, its job reports the error.
func (b *battery) builds(jobs []*job) {
	free := make(chan struct{}, runtime.NumCPU())
	var all sync.WaitGroup
	for _, f := range flaws() {
		if slices.ContainsFunc(jobs, func(j *job) bool { return j.flaw == f }) {
			all.Go(func() {
				free <- struct{}{}
				_, _ = b.binary(f)
				<-free
			})
		}
	}
	if slices.ContainsFunc(jobs, func(j *job) bool { return j.row.former }) {
		_, _ = b.former()
	}
	all.Wait()
}

var errNotPlayed = errors.New("there was no time left to play it")

func (b *battery) jobs(chosen []row) []*job {
	var all []*job
	for _, r := range chosen {
		if (r.measuring || r.full) && b.quick {
			continue
		}
		runs := b.runs
		if r.single {
			runs = 1
		}
		all = append(all, &job{row: r, runs: runs})
		for _, f := range r.flaws {
			if r.cron != nil && b.quick {
				continue
			}
			all = append(all, &job{row: r, flaw: f, runs: 1})
		}
	}
	return all
}

// alone reports whether a job must run alone. In a quick run no job must, because figures matter
// less.
func (b *battery) alone(j *job) bool { return j.row.alone && !b.quick }

// sideBySide plays the jobs that may run at the same time.
func (b *battery) sideBySide(jobs []*job) {
	todo := make(chan *job)
	var players sync.WaitGroup
	for range b.players() {
		players.Go(func() {
			for j := range todo {
				b.perform(j)
			}
		})
	}
	for _, j := range jobs {
		if !b.alone(j) {
			for range j.runs {
				todo <- j
			}
		}
	}
	close(todo)
	players.Wait()
}

// tries is how often a run is played at most. A control is repeated until its flaw shows: some
// faults come at a random moment that may be harmless, and some flaws show only for a tenth of a
// second, in which a busy machine may do nothing. Another run is repeated if a thread waited for a
// processor for too long.
const tries = 8

// perform plays a job once, and repeats it if necessary.
func (b *battery) perform(j *job) {
	for try := 1; b.ctx.Err() == nil; try++ {
		b.mu.Lock()
		j.begun++
		n := j.begun
		b.mu.Unlock()
		o, evidence := b.trial(j, fmt.Sprintf("%s-%d", j.name(), n))
		if errors.Is(b.ctx.Err(), context.Canceled) && o.acts.Safe() && len(o.unsafe) == 0 {
			return // an interrupted run proves nothing
		}
		b.mu.Lock()
		said, again := j.take(o, b.lease, try == tries || b.ctx.Err() != nil)
		fmt.Fprintf(b.log, "%s, run %d: %s\n", j.name(), n, said)
		for _, l := range o.late {
			fmt.Fprintln(b.log, "  late:", l)
		}
		switch {
		case again:
			fmt.Fprint(b.log, evidence)
		case said != fine && said != shows:
			j.evidence += fmt.Sprintf("%s, run %d: %s\n%s", j.name(), n, said, evidence)
		}
		b.mu.Unlock()
		if !again {
			return
		}
	}
}

// The verdicts on a run.
const (
	fine      = "ok"
	failed    = "FAILED"
	shows     = "its flaw shows"
	hides     = "its flaw does NOT show"
	disturbed = "a thread waited for a processor for so long that the lease may have been lost by that: played again"
	excused   = "a thread waited for a processor for too long each time: only acts, tokens and what is left over are judged"
)

// take adds the outcome of a run to a job. It returns the verdict, and whether to repeat the run.
// Of a disturbed run that is repeated, only the acts count. A late event neither fails a run nor
// repeats it.
func (j *job) take(o outcome, lease time.Duration, final bool) (said string, again bool) {
	switch {
	case j.flaw != nil:
		j.seen = j.seen.plus(o)
		switch {
		case len(o.unsafe) > 0:
			return failed, false
		case j.flaw.shows(o):
			return shows, false
		}
		return hides, !final
	case o.passed():
		j.seen = j.seen.plus(o)
		return fine, false
	case o.disturbed(lease) && !final:
		j.seen.acts = j.seen.acts.Plus(o.acts)
		j.disturbed++
		return disturbed, true
	case o.disturbed(lease) && o.orphans == 0 && o.excused().passed():
		j.seen = j.seen.plus(o.excused())
		return excused, false
	}
	j.seen = j.seen.plus(o)
	return failed, false
}

// trial plays a job once and leaves no processes behind. It returns the outcome, and the evidence
// as text.
func (b *battery) trial(j *job, name string) (outcome, string) {
	f := j.flaw
	if f == nil && b.offset(j.row) > 0 {
		f = wrongWall
	}
	binary, err := b.binary(f)
	if err != nil {
		return outcome{runs: 1, errs: []error{err}}, err.Error() + "\n"
	}
	around := figures.Listen()
	s, err := b.set(j.row, binary, name, j.flaw != nil)
	if err == nil {
		err = s.plays()
	}
	o := s.conclude(err)
	noise := around.End()
	o.waited = around.Worst()
	evidence := s.evidence(o) + "  " + noise + "\n"
	if b.keep == "" {
		_ = os.RemoveAll(s.dir)
	}
	return o, evidence
}

// plays plays the row, and then lets all candidates lead and stop, unless the row is a control.
func (s *stage) plays() (err error) {
	defer halt.Catch(&err)
	s.row.play(s)
	if s.control {
		s.sleep(s.lease / 4) // a process that should have ended may still act
		return nil
	}
	s.finale()
	return s.empty()
}

// outcome is the result of one or more runs of a row.
type outcome struct {
	runs int
	// acts is the verdict on the journal.
	acts witness.Verdict
	// unsafe are the faults that the witness did not find.
	unsafe []string
	// histories is the number of runs that test/history has judged, and traces that of traces.
	histories, traces int
	// last is the time from a fault to the last act of the old worker, next the time to the first
	// act of the next worker, and idle the time between the two acts.
	last, next, idle figures.Dist
	orphans          int      // remaining processes
	leftovers        int      // those of them that a tenure left when it ended in order
	wrong            []string // broken promises except those of acts; orphans are included
	late             []string // events that took longer than they should
	figures          []figure
	errs             []error       // of runs that could not be played
	waited           time.Duration // the longest time for which a thread waited for a processor
}

// figure is a measure that only some rows have.
type figure struct {
	what, value, bound string
	verdict            figures.Verdict
}

// plus returns the sum of two outcomes.
func (o outcome) plus(p outcome) outcome {
	return outcome{
		acts:      o.acts.Plus(p.acts),
		unsafe:    append(o.unsafe, p.unsafe...),
		histories: o.histories + p.histories, traces: o.traces + p.traces,
		runs:    o.runs + p.runs,
		last:    append(o.last, p.last...),
		next:    append(o.next, p.next...),
		idle:    append(o.idle, p.idle...),
		orphans: o.orphans + p.orphans, leftovers: o.leftovers + p.leftovers,
		wrong:   append(o.wrong, p.wrong...),
		late:    append(o.late, p.late...),
		figures: append(o.figures, p.figures...),
		errs:    append(o.errs, p.errs...),
		waited:  max(o.waited, p.waited),
	}
}

// verdict returns the worst verdict on any part of the outcome.
func (o outcome) verdict() figures.Verdict {
	v := figures.Safe(o.acts.Safe() && len(o.unsafe) == 0 && len(o.wrong) == 0)
	v = max(v, figures.Within(len(o.late) == 0))
	for _, f := range o.figures {
		v = max(v, f.verdict)
	}
	if len(o.errs) > 0 {
		v = max(v, figures.Unmeasured)
	}
	return v
}

// disturbed reports whether the run was safe, but a thread waited for a processor for so long that
// a lease may have expired, or that a guard and its command did nothing. Nothing excuses faults of
// acts and tokens, nor processes that a tenure leaves when it ends in order, which has no deadline.
// Other remaining processes are excused only if another run leaves none.
func (o outcome) disturbed(lease time.Duration) bool {
	return o.acts.Safe() && len(o.unsafe) == 0 && o.leftovers == 0 && o.waited > lease/10
}

// excused returns the outcome with broken promises counted as late. If threads waited for too long,
// a leader may have lost its lease, and could not keep the promises of a leader.
func (o outcome) excused() outcome {
	o.late, o.wrong = append(o.late, o.wrong...), nil
	return o
}

// passed reports whether every promise was kept. Bounds on time depend on other work of the
// machine, so a missed bound does not fail a row.
func (o outcome) passed() bool { return o.verdict() <= figures.Missed }
