package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/schedule/internal/ticks"
)

// Invocation is one start of a process for a tick that no schedule determines, such as by the same
// line of a crontab on each machine. Of all invocations for one tick, one runs it.
type Invocation struct {
	// Job is part of the key in the store, as Job.Name is.
	Job string
	// Tick names the tick, with 1 to 64 characters. The last 16 names are remembered, or fewer if
	// the state has 4 KiB.
	Tick string
	// Period identifies a tick without a name: two invocations are for the same tick if their
	// starts are less than half a Period apart. So wall clocks and starts may be off by that much.
	// Give the shortest time between two ticks.
	Period time.Duration
	// Start is when the process started, by its wall clock: by default, when NewOnce is called.
	Start time.Time
	// AtLeastOnce runs a tick again whose run was lost, and runs it also if the history of the
	// store may have changed. By default it runs at most once.
	AtLeastOnce bool
	// Window is how long after Start the tick may start: by default 1 h.
	Window time.Duration
	// Needs is as in Job.
	Needs time.Duration
}

// Once runs the tick of an Invocation, unless another invocation has run it. It starts nothing:
// pass a function that calls Lead to the election.
type Once struct {
	jobs *Jobs
	once *ticks.Invocation
}

// Outcome says how the tick of an Invocation stands.
type Outcome struct {
	// Decided: the tick does not start any more, for this invocation.
	Decided bool
	// Tick is its record. Without one, State is empty.
	Tick TickStatus
	// Ran: this call ran it. If it is not Decided, the term ended before the end was recorded.
	Ran bool
	// Reason says why a tick without a record does not start.
	Reason string
	// Other is the last tick without a recorded end, besides Tick. Only Read sets it.
	Other TickStatus
}

// NewOnce returns the invocation of a job of an election. It does not call the store. It returns an
// error that names the setting at fault.
func NewOnce(store driver.Store, election string, cfg Config, i Invocation) (*Once, error) {
	s, err := New(store, election, cfg)
	if err != nil {
		return nil, err
	}
	j := Job{
		Name: i.Job, AtLeastOnce: i.AtLeastOnce, Window: i.Window, Needs: i.Needs,
		Run: func(context.Context, Tick) error { return nil }, // Lead has the work
	}
	if err := cmp.Or(i.check(), j.check()); err != nil {
		return nil, fmt.Errorf("schedule: job %q: %w", i.Job, err)
	}
	if i.Start.IsZero() {
		i.Start = time.Now()
	}
	o := &ticks.Invocation{Name: i.Tick, Period: i.Period, Start: i.Start.UTC().Truncate(time.Millisecond)}
	own, err := s.own(j, ticks.Policy{Plan: "on request", Once: o})
	if err != nil {
		return nil, err
	}
	s.jobs = []*job{own}
	return &Once{s, o}, nil
}

func (i *Invocation) check() error {
	switch n := utf8.RuneCountInString(i.Tick); {
	case (i.Tick == "") == (i.Period == 0):
		return errors.New("it needs either Tick or Period")
	case n > 64 || !utf8.ValidString(i.Tick):
		return fmt.Errorf("the name of the tick has %d characters, not 1 to 64", n)
	case i.Period < 0:
		return errors.New("Period must not be negative")
	}
	return nil
}

// Lead runs the tick in one term, unless its record shows that it ran. It returns when the outcome
// is in the store, the leader was asked to finish, or the term is over. The context of run ends
// with the term, before another leader can start anything. The error is one of the arguments.
func (o *Once) Lead(ctx context.Context, term *tenure.Term, run func(context.Context, Tick) error) (Outcome, error) {
	j, ran := o.jobs.jobs[0], false
	j.Run = func(ctx context.Context, t Tick) error {
		ran = true
		return run(ctx, t)
	}
	if err := o.jobs.Lead(ctx, term); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Ran: ran}
	if v := j.ticks.Verdict(); v != nil {
		out.Decided, out.Reason = true, v.Reason
		if v.Tick.State != "" {
			out.Tick = statusOf(&v.Tick)
		}
	}
	return out, nil
}

// Read returns how the tick stands, as the store shows it. It needs no part in the election.
func (o *Once) Read(ctx context.Context) (Outcome, error) {
	j := o.jobs.jobs[0]
	s, err := read(ctx, o.jobs.store, j.key)
	if err != nil {
		if errors.Is(err, ErrNoState) {
			err = nil
		}
		return Outcome{}, err
	}
	out, t := Outcome{}, o.once.Of(&s)
	for n := range s.Ticks {
		if one := &s.Ticks[n]; one == t {
			out.Tick = statusOf(one)
		} else if one.State == ticks.Started {
			out.Other = statusOf(one)
		}
	}
	out.Decided = t != nil && (t.State == ticks.Finished || t.State == ticks.Failed || t.State == ticks.Lost && !j.AtLeastOnce)
	return out, nil
}
