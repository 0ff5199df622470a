package ticks

import (
	"errors"
	"time"

	"github.com/tenure-go/tenure/driver"
)

var (
	// ErrUnchanged is returned by Decide if there is nothing to write.
	ErrUnchanged = errors.New("nothing to write")
	// ErrNotLeading is returned by Decide if the term is over.
	ErrNotLeading = errors.New("the term is over")
)

// LookEvery is how often the caller of Wake calls it, at least. If maxSilence passes between two
// calls, by the wall clock, the machine slept or its clock was set: no leader waited for the ticks
// in between.
const (
	LookEvery  = 30 * time.Second
	maxSilence = 2 * LookEvery
)

// farAhead is how far a state may be ahead of a member's clock before a job that must not miss its
// ticks lowers State.Over (J6). It is more than the longest lease, which J5 adds.
const farAhead = 2 * time.Hour

// CatchUp says which of the ticks that no leader waited for run late (J7).
type CatchUp uint8

// The choices.
const (
	CatchUpLast CatchUp = iota
	CatchUpNone
	CatchUpAll
)

// Policy holds the settings. They do not change while the program runs.
type Policy struct {
	// Plan is the text of the schedule and its zone. Next returns the first planned instant after
	// the given one, or zero.
	Plan string
	Next func(time.Time) time.Time
	// AtLeastOnce: a tick whose run was lost runs again. Otherwise no tick is started twice.
	AtLeastOnce bool
	CatchUp     CatchUp
	// Queue: a tick that comes due during a run waits for its end. Otherwise it is missed.
	Queue bool
	// Window is how late a tick may start.
	Window time.Duration
	// ClockOffset is how far the wall clock of each member may be off.
	ClockOffset time.Duration
	// Needs is how much of the lease must remain when a run starts.
	Needs time.Duration
	// Once replaces Plan, Next, CatchUp and Queue by one tick.
	Once *Invocation
	// Nonce returns a text that no other call returns.
	Nonce func() string
}

// apart is the largest difference between the wall clocks of two members.
func (p *Policy) apart() time.Duration { return 2 * p.ClockOffset }

// Term is the term of a leader. Lead is a name that no other term of any process has.
type Term struct {
	Token    uint64
	ID, Lead string
}

// Facts hold when a read is answered.
type Facts struct {
	// Now is the wall clock.
	Now time.Time
	Live
	// Lease is the longest lease that may have been in use.
	Lease time.Duration
	// Disturbed is when the election last noticed that the store's history changed, by the wall
	// clock of this process. Zero: never.
	Disturbed time.Time
}

// Live is the state of the term.
type Live struct {
	// Lost: the term is over. Asked: the leader was asked to finish.
	Lost, Asked bool
	// Remaining is how much of the lease remains.
	Remaining time.Duration
}

// Job is one job in one process. Its methods are not safe for concurrent use.
type Job struct {
	policy Policy
	seen   sighting
	term   Term
	// watching is since when this leader waits for ticks, and looked the last time it did.
	watching, looked time.Time
	// wrote: a write of this term was confirmed, so that only this term's writes may follow it.
	wrote bool
	// pending are this term's writes of unknown outcome, by their nonces.
	pending map[string]step
	// run is the run of this process whose end the store does not show yet.
	run *run
	// refused: the store shows a start that did not happen.
	refused bool
	// confirmed is the tick that the store shows as started, until Start.
	confirmed *Tick
	// next is when to read again: the next planned instant that is not decided. Zero: never.
	next    time.Time
	alarmed time.Time
	step    step
	verdict *Verdict // see Verdict
}

// sighting is the last state that this process wrote or read, over all its terms.
type sighting struct {
	known bool
	seq   uint64
	nonce string
	token uint64
	era   uint64
}

func seenIn(s *State, era uint64) sighting {
	return sighting{true, s.Seq, s.Nonce, s.Token, era}
}

type run struct {
	tick  Tick
	ended bool
}

// step follows if the write of Decide is confirmed.
type step struct {
	state State
	era   uint64
	// asOf is the time of Facts: later ticks are not decided.
	asOf time.Time
	// start is the tick that the state shows as started, and ended that it shows the end of the
	// run.
	start *Tick
	ended bool
	// wait: there was not enough of the lease for a start, or the tick is not due by this clock.
	wait    bool
	verdict *Verdict
	events  []Event
}

// New returns a job that has seen nothing.
func New(p Policy) *Job { return &Job{policy: p} }

// Begin begins a term. Runs of earlier terms of this process have ended.
func (j *Job) Begin(now time.Time, t Term) {
	j.term, j.watching, j.looked, j.wrote = t, now, now, false
	j.pending, j.confirmed, j.refused, j.verdict, j.next = map[string]step{}, nil, false, nil, now
	if j.run != nil && !j.run.ended {
		j.run = nil
	}
}

// Running reports whether a run goes on.
func (j *Job) Running() bool { return j.run != nil && !j.run.ended }

// Settled reports whether the store shows all that this term did, so that it may end.
func (j *Job) Settled() bool {
	return j.run == nil && j.confirmed == nil && !j.refused && len(j.pending) == 0
}

// Wake returns when to read again, by the wall clock; zero if that is not known, as during a run.
// Call it at least every LookEvery.
func (j *Job) Wake(now time.Time) time.Time {
	if now.Sub(j.looked).Abs() > maxSilence {
		j.watching = now
	}
	j.looked = now
	return j.next
}

// Result follows from an outcome.
type Result struct {
	// Start: call Start, since the store shows a tick of this term as started.
	Start bool
	// Again: read again at once.
	Again  bool
	Events []Event
	// Shown is the state in the store; nil if it is not known.
	Shown *State
}

// Settle takes the outcome of the read and the write of Decide: nil if the write was confirmed,
// or the error of the read, of Decide or of the write.
func (j *Job) Settle(now time.Time, err error) Result {
	s := j.step
	j.step = step{}
	switch {
	case err == nil:
		clear(j.pending) // each was refused, or is this one
	case j.policy.Once != nil && errors.Is(err, ErrForeign):
		j.verdict = &Verdict{Reason: err.Error()}
		return Result{}
	case !errors.Is(err, ErrUnchanged):
		j.next = now // a late answer decides nothing: the next read shows the outcome
		return Result{Again: errors.Is(err, driver.ErrConflict)}
	}
	j.wrote = j.wrote || err == nil
	j.seen = seenIn(&s.state, s.era)
	if s.ended {
		j.run = nil
	}
	for _, e := range s.events {
		if e.Kind == EventClock {
			j.alarmed = now
		}
	}
	j.confirmed = s.start
	j.next = j.nextAfter(s.asOf, &s.state)
	if s.wait {
		j.next = s.asOf.Add(time.Second)
	}
	j.refused = false
	if !s.state.Draft { // else the next state would not be believed
		j.verdict = s.verdict
	}
	return Result{Start: s.start != nil, Again: s.state.Draft, Events: s.events, Shown: &s.state}
}

// nextAfter returns the next planned instant that is not decided, or asOf if this pass left work.
func (j *Job) nextAfter(asOf time.Time, s *State) time.Time {
	switch {
	case s.Draft || j.confirmed != nil:
		return asOf
	case j.Running():
		return time.Time{}
	}
	if j.policy.Once != nil {
		return time.Time{}
	}
	next := j.planned(asOf, s)
	for _, t := range s.Ticks { // one that a fast clock started too early runs again when it is due
		if t.State == Started && t.Planned.After(asOf) && (next.IsZero() || t.Planned.Before(next)) {
			next = t.Planned
		}
	}
	return next
}

// planned returns the next planned instant that is not decided; zero if there is none.
func (j *Job) planned(asOf time.Time, s *State) time.Time {
	next := j.after(later(asOf, s.floor()))
	for !next.IsZero() && s.find(next) != nil {
		next = j.after(next)
	}
	return next
}

// after returns the first planned instant after t; zero if there is none.
func (j *Job) after(t time.Time) time.Time {
	if t.IsZero() || j.policy.Next == nil {
		return time.Time{}
	}
	return j.policy.Next(t).UTC()
}

// Expect sets due to the planned instants of the first ticks after that of the last success, as a
// state shows it.
func (j *Job) Expect(s *State, due []time.Time) {
	t := s.Success.Since
	for i := range due {
		t = j.after(t)
		due[i] = t
	}
}

// Start returns the confirmed tick if it may start now. The caller starts it at once, and calls End
// when it has ended. Otherwise the next pass takes the record back (J2, J3).
func (j *Job) Start(now time.Time, l Live) (t Tick, ok bool) {
	c := j.confirmed
	j.confirmed, j.next = nil, now
	switch {
	case c == nil:
		return Tick{}, false
	case l.Lost, l.Asked, l.Remaining < j.policy.Needs:
		j.refused = true
		return Tick{}, false
	case c.Planned.After(now): // the clock was set back
		return Tick{}, false
	}
	j.run, j.next = &run{tick: *c}, time.Time{}
	return *c, true
}

// Abandon notes that the run has ended because its term was over: J4 decides about the tick.
func (j *Job) Abandon() { j.run = nil }

// End notes the end of the run. Code and text go into the state.
func (j *Job) End(now time.Time, failed bool, code int, text string) {
	if !j.Running() {
		return
	}
	t := &j.run.tick
	t.State, t.Ended, t.Code, t.Error = Finished, now, code, cut(text)
	if failed {
		t.State = Failed
	}
	j.run.ended, j.next = true, now
}
