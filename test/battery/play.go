package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// job is played a number of times: a row, as it is or as a control, with a flaw.
type job struct {
	row   row
	flaw  *flaw // nil: as it is
	runs  int
	begun int
	seen  outcome
	// disturbed is how many runs were played again.
	disturbed int
}

func (j *job) name() string {
	if j.flaw != nil {
		return j.row.name + "-" + j.flaw.name
	}
	return j.row.name
}

// passed: with a flaw something must show.
func (j *job) passed() bool {
	if j.flaw != nil {
		return j.flaw.shows(j.seen)
	}
	return j.seen.passed()
}

// play plays rows and their controls, as many side by side as may be, and then those that want to
// be alone.
func (b *battery) play(chosen []row) *results {
	res := &results{battery: b, jobs: b.jobs(chosen)}
	// before the measurements: it keeps the machine busy. Errors are reported when it is played.
	for _, j := range res.jobs {
		_, _ = b.binary(j.flaw)
	}
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

var errNotPlayed = errors.New("there was no time left to play it")

func (b *battery) jobs(chosen []row) []*job {
	var all []*job
	for _, r := range chosen {
		if r.measuring && b.quick && b.row == "" {
			continue
		}
		runs := b.runs
		if r.single {
			runs = 1
		}
		all = append(all, &job{row: r, runs: runs})
		for _, f := range r.flaws {
			all = append(all, &job{row: r, flaw: f, runs: 1})
		}
	}
	return all
}

// alone reports whether nothing else may be played beside a job: in a quick run everything may,
// since its figures matter less.
func (b *battery) alone(j *job) bool { return j.row.alone && !b.quick }

// sideBySide plays the jobs that may be played so.
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

// tries is how often a run may be played: a control until its flaw shows, since some faults come at
// a random moment that is not always a bad one, and some flaws show for a tenth of a second, in
// which a busy machine may do nothing; any other until the machine lets it be judged.
const tries = 8

// perform plays a job once.
func (b *battery) perform(j *job) {
	for try := 1; b.ctx.Err() == nil; try++ {
		b.mu.Lock()
		j.begun++
		n := j.begun
		b.mu.Unlock()
		o, evidence := b.trial(j, fmt.Sprintf("%s-%d", j.name(), n))
		if errors.Is(b.ctx.Err(), context.Canceled) && o.acts.Safe() {
			return // a part of a run says nothing
		}
		b.mu.Lock()
		said, again := j.take(o, b.lease, try == tries || b.ctx.Err() != nil)
		fmt.Fprintf(b.log, "%s, run %d: %s\n", j.name(), n, said)
		for _, l := range o.late {
			fmt.Fprintln(b.log, "  late:", l)
		}
		if said != fine && said != shows {
			fmt.Fprint(b.log, evidence)
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
	disturbed = "the machine stood still for so long that the lease may have been lost by that: played again"
	excused   = "the machine stood still for too long each time: only acts, tokens and what is left over are judged"
)

// take adds a run to a job, says how it ended, and whether it is to be played again. Of one that
// was disturbed only that counts which the machine cannot be blamed for. That something came late
// fails nothing, and is no reason to play again.
func (j *job) take(o outcome, lease time.Duration, final bool) (said string, again bool) {
	switch {
	case j.flaw != nil:
		j.seen = j.seen.plus(o)
		if j.flaw.shows(o) {
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
	case o.disturbed(lease) && o.excused().passed():
		j.seen = j.seen.plus(o.excused())
		return excused, false
	}
	j.seen = j.seen.plus(o)
	return failed, false
}

// trial plays a job once and leaves nothing behind but files. The evidence is for people.
func (b *battery) trial(j *job, name string) (outcome, string) {
	binary, err := b.binary(j.flaw)
	if err != nil {
		return outcome{runs: 1, errs: []error{err}}, err.Error() + "\n"
	}
	around := figures.Listen()
	s, err := b.set(j.row, binary, name, j.flaw != nil)
	if err == nil {
		err = j.row.play(s)
	}
	switch {
	case err != nil:
	case j.flaw != nil:
		s.sleep(s.lease / 4) // a process that should have ended may go on
	default:
		if err = s.finale(); err == nil {
			err = s.empty()
		}
	}
	o := s.conclude(err)
	noise := around.End()
	o.stood = around.Worst()
	evidence := s.evidence(o) + "  " + noise + "\n"
	if b.keep == "" {
		_ = os.RemoveAll(s.dir)
	}
	return o, evidence
}
