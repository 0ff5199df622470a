package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/bridge"
	"github.com/tenure-go/tenure/internal/update"
	"github.com/tenure-go/tenure/schedule/internal/ticks"
)

// maxPasses bounds the passes under way: each makes at most one call of the store at a time.
const maxPasses = 16

// leading is one term. Its loop owns all jobs, except that a pass owns the ticks of its job while
// it reads and writes. Only a pass and a run have goroutines.
type leading struct {
	*Jobs
	term   *tenure.Term
	clock  clock.Clock
	asked  <-chan struct{}
	queue  queue
	looked time.Time // when all jobs were looked at
	passes int       // under way
	runs   int       // under way
	passed chan pass
	ended  chan result
	wake   chan struct{}
}

// pass is the outcome of one read and one write.
type pass struct {
	job *job
	err error
}

// result is the end of a run.
type result struct {
	job  *job
	tick ticks.Tick
	took time.Duration
	err  error
}

func newLeading(s *Jobs, term *tenure.Term) *leading {
	f := bridge.FactsOf(term)
	l := &leading{
		Jobs: s, term: term, clock: f.Clock, asked: term.Context().Done(),
		passed: make(chan pass), ended: make(chan result), wake: make(chan struct{}, 1),
	}
	lead := nonce()
	for _, j := range s.jobs {
		j.retry, j.failures, j.ended, j.place = time.Time{}, 0, nil, -1
		j.ticks.Begin(l.now(), ticks.Term{Token: term.Token(), ID: f.ID, Lead: lead})
	}
	return l
}

func (l *leading) now() time.Time { return l.clock.Now().Wall }

// rest notes that the term is over.
func (l *leading) rest() {
	for _, j := range l.jobs {
		j.meter.rest()
	}
}

// run goes on until the leader was asked to finish and the store shows all that it did, or until
// the term is over.
func (l *leading) run(ctx context.Context) {
	over, asked := l.term.LeaseContext().Done(), ctx.Done()
	for {
		l.begin()
		if l.passes == 0 && l.runs == 0 && l.done() {
			return
		}
		stop := l.wakeUp()
		select {
		case p := <-l.passed:
			l.settle(p)
		case r := <-l.ended:
			l.runs--
			r.job.ended = &r
			l.noteEnd(r.job)
			l.plan(r.job, l.now())
		case <-l.wake:
		case <-asked:
			asked = nil
			l.lookAtAll(l.now())
		case <-over:
			over = nil
		}
		stop()
	}
}

// done reports whether the term is over, or nothing is left to record and this leader was asked to
// finish or needs to do no more.
func (l *leading) done() bool {
	live := l.live()
	unsettled := func(j *job) bool { return !j.ticks.Settled() }
	return live.Lost || (live.Asked || l.answered()) && !slices.ContainsFunc(l.jobs, unsettled)
}

// answered reports whether the tick of an Invocation needs no more work.
func (l *leading) answered() bool {
	return slices.ContainsFunc(l.jobs, func(j *job) bool { return j.ticks.Verdict() != nil })
}

// wakeUp sends to wake when the next job is due.
func (l *leading) wakeUp() (stop func() bool) {
	now := l.now()
	d := l.looked.Add(ticks.LookEvery).Sub(now)
	if len(l.queue) > 0 && l.passes < maxPasses && !l.live().Lost {
		d = min(d, l.queue[0].due.Sub(now))
	}
	return l.clock.AfterFunc(min(max(d, 0), ticks.LookEvery), func() {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	})
}

// lookAtAll plans the next pass of each job.
func (l *leading) lookAtAll(now time.Time) {
	l.looked = now
	for _, j := range l.jobs {
		l.plan(j, now)
	}
}

// plan sets when the next pass of a job is due.
func (l *leading) plan(j *job, now time.Time) {
	at, known := l.due(j, now, l.live().Asked)
	l.queue.set(j, at, known)
}

// due returns when the next pass of a job is due; false if that is not known. A leader that was
// asked to finish only records what is left to record.
func (l *leading) due(j *job, now time.Time, asked bool) (at time.Time, ok bool) {
	if j.passing {
		return at, false
	}
	at = j.ticks.Wake(now)
	switch {
	case asked && (j.ticks.Settled() || j.ticks.Running()):
		return at, false
	case asked:
		at = now
	case at.IsZero():
		return at, false
	}
	if j.retry.After(at) && j.retry.Sub(now) < time.Minute { // else the clock was set back
		at = j.retry
	}
	return at, true
}

// begin starts the passes that are due. Now and then it looks at all jobs, since clocks may step.
func (l *leading) begin() {
	now := l.now()
	if now.Sub(l.looked).Abs() >= ticks.LookEvery {
		l.lookAtAll(now)
	}
	if l.live().Lost {
		return
	}
	for l.passes < maxPasses {
		j := l.queue.next(now)
		if j == nil {
			return
		}
		l.passes++
		j.passing = true
		go func() { l.passed <- pass{j, l.pass(j)} }()
	}
}

// pass reads the state and writes the next one, within one attempt (J1).
func (l *leading) pass(j *job) error {
	f := bridge.FactsOf(l.term)
	return update.Once(l.term.LeaseContext(), l.store, l.clock, j.key, f.Attempt, func(e driver.Entry) ([]byte, error) {
		f := bridge.FactsOf(l.term)
		return j.ticks.Decide(e, ticks.Facts{Now: l.now(), Live: l.live(), Lease: f.Lease, Disturbed: f.HistoryChanged})
	})
}

// live reads the clocks. The term cannot be valid later if it is not valid now.
func (l *leading) live() ticks.Live {
	live := ticks.Live{Remaining: l.term.Remaining(), Lost: l.term.Err() != nil}
	select {
	case <-l.asked:
		live.Asked = true
	default:
	}
	return live
}

// settle takes the outcome of a pass, and starts the tick that it confirmed.
func (l *leading) settle(p pass) {
	j := p.job
	l.passes--
	j.passing = false
	r := j.ticks.Settle(l.now(), p.err)
	l.tellAll(j, r.Events)
	j.meter.know(j.ticks, r.Shown)
	l.noteEnd(j)
	l.retryLater(j, p.err)
	if r.Start {
		l.start(j)
	}
	l.plan(j, l.now())
}

// start starts the confirmed tick, if it may still start.
func (l *leading) start(j *job) {
	if t, ok := j.ticks.Start(l.now(), l.live()); ok {
		l.runs++
		l.tell(j, Event{Kind: EventStarted, Planned: t.Planned, Attempt: t.Attempt})
		go l.work(j, t)
	}
}

// retryLater sets when the next pass may begin after one that failed: at once after a conflict, and
// later and later after anything else.
func (l *leading) retryLater(j *job, err error) {
	switch {
	case err == nil, errors.Is(err, ticks.ErrUnchanged):
		j.failures, j.retry = 0, time.Time{}
		return
	case errors.Is(err, ticks.ErrNotLeading), l.live().Lost:
		return
	}
	j.failures++
	wait := min(20*time.Millisecond<<min(j.failures, 8), 5*time.Second)
	if errors.Is(err, ticks.ErrForeign) {
		wait = ticks.LookEvery
	}
	j.retry = l.now().Add(wait)
	if !errors.Is(err, driver.ErrConflict) {
		l.tell(j, Event{Kind: EventTrouble, Err: fmt.Errorf("schedule: key %q: %w", j.key, err)})
	}
}

// work runs one tick. Its goroutine ends with the work, even if that calls runtime.Goexit.
func (l *leading) work(j *job, t ticks.Tick) {
	began := l.clock.Now()
	r := result{job: j, tick: t, err: errors.New("the work called runtime.Goexit")}
	defer func() {
		r.took = l.clock.Now().LeaderSince(began.Instant)
		l.ended <- r
	}()
	ctx := l.term.LeaseContext()
	if j.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, j.Timeout, fmt.Errorf("it ran longer than Timeout %v", j.Timeout))
		defer cancel()
	}
	if ctx.Err() == nil {
		r.err = j.Run(ctx, Tick{Job: j.Name, Planned: t.Planned, Name: t.Name, Attempt: t.Attempt, Token: t.Token})
	}
	if ctx.Err() != nil { // also if it says that it went well
		r.err = errors.Join(context.Cause(ctx), r.err)
	}
}

// noteEnd passes the end of a run on, when no pass owns the ticks.
func (l *leading) noteEnd(j *job) {
	if j.passing || j.ended == nil {
		return
	}
	r := j.ended
	j.ended = nil
	e := Event{Kind: EventFinished, Planned: r.tick.Planned, Attempt: r.tick.Attempt, Took: r.took, Err: r.err}
	switch {
	case r.err == nil:
		j.ticks.End(l.now(), false, 0, "")
	case l.live().Lost: // the next leader decides (J4)
		e.Kind = EventLost
		j.ticks.Abandon()
	default:
		e.Kind = EventFailed
		code := 1
		if exit, ok := errors.AsType[interface {
			error
			ExitCode() int
		}](r.err); ok {
			code = exit.ExitCode()
		}
		j.ticks.End(l.now(), true, code, r.err.Error())
	}
	l.tell(j, e)
}
