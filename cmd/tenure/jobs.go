package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/schedule"
)

const aboutJobs = `Shows the scheduled jobs of an election, as the store has them: of tenure cron, and of programs in Go.
It takes no part in the election and writes nothing. Tenure status shows whether there is a leader,
which the jobs need.

A job has a state once a leader has seen it. Without --job all jobs are listed, if the store can list
its keys. Times are by the clocks of the leaders. The next tick is that of the schedule; it may be
overdue if no machine leads.

Exit codes:
  0  each job is shown
  1  the store cannot be read or listed, or a key holds no state of a job
  2  a flag, an argument or a variable is wrong
  3  there is no job

Each line of --json is one object about a job. It has time, event ("job"), election, id (of the
leader that wrote the state last), term, job, schedule (with the time zone), updated, next (absent
if there is none), late and overlap (ticks that never started), lastMissed, and ticks, the last
ones: objects with planned, name (of a tick of tenure tick), state ("started", "finished", "failed" or "lost"), id, token, attempt,
began, ended, and for a failed one code and error.`

const examplesJobs = `  tenure jobs --store nats://host:4222/ELECTIONS --election nightly
  tenure jobs --store nats://host:4222/ELECTIONS --election nightly --job report --json | jq '.ticks[-1]'`

// jobsFlags are the flags of jobs.
type jobsFlags struct {
	observerFlags
	job string
}

func newJobs() *cobra.Command {
	var j jobsFlags
	c := command("jobs --store URL --election NAME", "Show scheduled jobs, with their last and next ticks", aboutJobs, examplesJobs, j.run)
	j.define(c.Flags())
	c.Flags().StringVar(&j.job, "job", "", "name of one job (default all)")
	cli.Group(c.Flags(), cli.GroupElection)
	return c
}

func (j *jobsFlags) run(c *cobra.Command) error {
	if err := j.resolve(c); err != nil {
		return err
	}
	s, err := j.connect(c, nil)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	names := []string{j.job}
	if j.job == "" {
		if names, err = j.names(c.Context(), s); err != nil {
			return err
		}
	}
	all, err := j.read(c.Context(), s.Driver, names)
	for i := range all {
		all[i].Time = time.Now().UTC()
	}
	j.print(c.OutOrStdout(), all)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		hint := "tenure status shows the election; a job has a state once a leader has seen it"
		f := fault.New(hint, "%v has no state of %s of election %q", j.place, j.wanted(), j.election)
		f.Code = fault.NoLeader
		return f
	}
	return nil
}

func (j *jobsFlags) wanted() string {
	if j.job == "" {
		return "a job"
	}
	return fmt.Sprintf("job %q", j.job)
}

// names returns the names of the election's jobs.
func (j *jobsFlags) names(ctx context.Context, s *stores.Store) ([]string, error) {
	const hint = "name one with --job"
	bounded, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	names, err := schedule.Names(bounded, s.Driver, j.election)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, fault.New(hint, "%v cannot list its jobs", j.place)
	case err == nil:
		return names, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fault.New("check the right to list; or "+hint, "%v does not list its keys in time: %w", j.place, err)
	}
	return nil, j.place.Explain(err)
}

// read returns the jobs that have a state, and the errors of the others.
func (j *jobsFlags) read(ctx context.Context, store driver.Store, names []string) ([]jobState, error) {
	states, failed := make([]*jobState, len(names)), make([]error, len(names))
	each(len(names), maxLooking, func(i int) {
		bounded, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		st, err := schedule.Read(bounded, store, j.election, names[i])
		switch {
		case err == nil:
			states[i] = j.state(names[i], st)
		case !errors.Is(err, schedule.ErrNoState):
			failed[i] = j.place.Explain(err)
		}
	})
	var all []jobState
	for _, st := range states {
		if st != nil {
			all = append(all, *st)
		}
	}
	return all, errors.Join(failed...)
}

// jobState is one line of --json.
type jobState struct {
	output.Head
	Job        string     `json:"job"`
	Schedule   string     `json:"schedule"`
	Updated    time.Time  `json:"updated"`
	Next       time.Time  `json:"next,omitzero"`
	Late       int        `json:"late"`
	Overlap    int        `json:"overlap"`
	LastMissed time.Time  `json:"lastMissed,omitzero"`
	Ticks      []jobsTick `json:"ticks,omitempty"`
}

// jobsTick is one tick that has started.
type jobsTick struct {
	Planned time.Time `json:"planned"`
	Name    string    `json:"name,omitempty"`
	State   string    `json:"state"`
	ID      string    `json:"id"`
	Token   uint64    `json:"token"`
	Attempt int       `json:"attempt"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	Code    int       `json:"code,omitempty"`
	Error   string    `json:"error,omitempty"`
}

func (j *jobsFlags) state(name string, st schedule.Status) *jobState {
	s := &jobState{
		Head: output.Head{Event: "job", Election: j.election, ID: st.ID, Term: st.Token}, Job: name, Schedule: st.Plan,
		Updated: st.Updated, Next: st.Next, Late: st.Late, Overlap: st.Overlap, LastMissed: st.LastMissed,
	}
	for _, t := range st.Ticks {
		s.Ticks = append(s.Ticks, jobsTick{
			Planned: t.Planned, Name: t.Name, State: t.State, ID: t.ID, Token: t.Token, Attempt: t.Attempt, Began: t.Began, Ended: t.Ended, Code: t.Code, Error: t.Error,
		})
	}
	return s
}

func (j *jobsFlags) print(out io.Writer, all []jobState) {
	if j.json {
		for _, st := range all {
			output.JSON(out, st)
		}
		return
	}
	if len(all) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOB\tSCHEDULE\tLAST TICK\tSTATE\tMACHINE\tNEXT TICK\tMISSED")
	for i := range all {
		fmt.Fprintln(w, all[i].line())
	}
	_ = w.Flush() // an error means that the reader has gone
}

// line returns the columns of a job.
func (s *jobState) line() string {
	last, state, machine, next := "-", "-", "-", "-"
	if n := len(s.Ticks); n > 0 {
		t := s.Ticks[n-1]
		last, state, machine = cmp.Or(t.Name, t.Planned.UTC().Format(time.RFC3339)), t.State, t.ID
		switch t.State {
		case "failed":
			state = fmt.Sprintf("failed (code %d)", t.Code)
		case "finished":
			state = fmt.Sprintf("finished in %v", t.Ended.Sub(t.Began).Round(100*time.Millisecond))
		}
		if t.Attempt > 1 {
			state += fmt.Sprintf(", attempt %d", t.Attempt)
		}
	}
	if !s.Next.IsZero() {
		next = s.Next.UTC().Format(time.RFC3339)
	}
	cells := []string{s.Job, s.Schedule, last, state, machine, next, s.missed()}
	for i, cell := range cells {
		cells[i] = output.Plain(cell)
	}
	return strings.Join(cells, "\t")
}

func (s *jobState) missed() string {
	if s.Late+s.Overlap == 0 {
		return "0"
	}
	return fmt.Sprintf("%d late, %d overlap; last %s", s.Late, s.Overlap, s.LastMissed.UTC().Format(time.RFC3339))
}
