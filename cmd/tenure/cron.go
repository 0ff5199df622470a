//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // for machines without time zone files, such as small containers

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
	"github.com/tenure-go/tenure/cmd/tenure/internal/jobs"
	"github.com/tenure-go/tenure/schedule"
)

// cronFlags are the settings of cron.
type cronFlags struct {
	candidateFlags
	file        string
	job         jobs.Job
	atMostOnce  bool
	clockOffset time.Duration
	output      string
	keep        int

	window, timeout time.Duration

	jobs []jobs.Job // the result of resolve
}

func newCron() *cobra.Command {
	var r cronFlags
	return commandOfCandidate("cron --store URL --election NAME --schedule CRON [flags] [--] COMMAND [ARG...]",
		shortCron, aboutCron, examplesCron, r.define, r.run)
}

// ofOneJob are the flags that a file replaces.
var ofOneJob = []string{"schedule", "timezone", "job", "catch-up", "overlap", "at-most-once", "at-least-once", "window", "timeout"}

func (r *cronFlags) define(f *pflag.FlagSet) {
	r.defineElection(f)
	usual := jobs.Usual()
	j := &r.job
	f.StringVar(&j.Schedule, "schedule", "", "five fields (minute, hour, day of month, month, day of week), a name such as @daily, or @every 90s")
	f.StringVar(&j.Timezone, "timezone", usual.Timezone, "time zone of the schedule, such as Europe/Berlin")
	f.StringVar(&j.Name, "job", "job", "name of the job, part of the key in the store")
	f.StringVar(&j.CatchUp, "catch-up", usual.CatchUp, "last, none or all: which of the ticks run late that no leader waited for, as in a failover")
	f.StringVar(&j.Overlap, "overlap", usual.Overlap, "skip or queue: what happens to a tick that comes due while its job runs")
	f.BoolVar(&r.atMostOnce, "at-most-once", false, "a tick whose machine died during the run is lost (the default)")
	f.BoolVar(&j.AtLeastOnce, "at-least-once", false, "a tick whose machine died during the run is run again")
	f.DurationVar(&r.window, "window", time.Duration(usual.Window), "how late a tick may start")
	f.DurationVar(&r.timeout, "timeout", 0, "how long a run may take until SIGTERM, and SIGKILL after --stop-within; 0: no limit")
	f.StringVar(&r.file, "file", "", "file with several jobs, in YAML, instead of COMMAND and the flags of one job")
	f.DurationVar(&r.clockOffset, "clock-offset", 10*time.Second, "how far the clock of each machine may be off, at most 10m")
	f.StringVar(&r.output, "output", "", "directory in which the output of each run is kept, as JOB/PLANNED.log (default: it goes to standard output and error)")
	f.IntVar(&r.keep, "keep", 30, "how many of these files are kept for each job")
	cli.Group(f, "Jobs")
	r.defineRest(f)
}

func (r *cronFlags) resolve(f *pflag.FlagSet, env func(string) string, args []string) error {
	return r.candidateFlags.resolve(f, env, func(from cli.Sources) error { return r.checkOwn(f, from, args) })
}

func (r *cronFlags) checkOwn(f *pflag.FlagSet, from cli.Sources, args []string) error {
	switch {
	case r.job.AtLeastOnce && r.atMostOnce:
		return fmt.Errorf("%s and %s contradict each other: give one of them", from.Named("at-least-once"), from.Named("at-most-once"))
	case r.clockOffset > 10*time.Minute:
		return fmt.Errorf("%s is %v; it must be from 0 to 10 min", from.Named("clock-offset"), r.clockOffset)
	case r.keep < 1:
		return fmt.Errorf("%s is %d; it must be at least 1", from.Named("keep"), r.keep)
	case f.Changed("keep") && r.output == "":
		return fmt.Errorf("%s is for the files of --output, which is missing", from.Named("keep"))
	}
	limits, err := r.place.Limits()
	if err != nil {
		return err
	}
	named, err := r.name(f, from, args)
	if err != nil {
		return err
	}
	return jobs.Check(r.jobs, r.election, schedule.Config{ClockOffset: r.clockOffset}, limits, named)
}

// name sets the jobs, and returns how people know their settings.
func (r *cronFlags) name(f *pflag.FlagSet, from cli.Sources, args []string) (named func(job, setting string) string, err error) {
	switch {
	case r.file == "" && len(args) == 0:
		return nil, fault.OfUsage(errors.New("there is no command to run: give COMMAND, or several jobs with --file"))
	case r.file == "":
		r.job.Command, r.job.Window, r.job.Timeout = args, jobs.Duration(r.window), jobs.Duration(r.timeout)
		r.jobs = []jobs.Job{r.job}
		return func(_, setting string) string {
			if setting == "name" {
				setting = "job"
			}
			return from.Named(setting)
		}, nil
	case len(args) > 0:
		return nil, fault.OfUsage(fmt.Errorf("there is a command, and %s names a file with commands: give one of them", from.Named("file")))
	}
	for _, flag := range ofOneJob {
		if f.Changed(flag) {
			return nil, fmt.Errorf("%s is for one job: with %s, write it into the file", from.Named(flag), from.Named("file"))
		}
	}
	if r.jobs, err = jobs.Read(r.file); err != nil {
		return nil, fmt.Errorf("%s: %w", from.Named("file"), err)
	}
	return func(job, setting string) string { return fmt.Sprintf("%s: %s of job %q", r.file, setting, job) }, nil
}

func (r *cronFlags) run(c *cobra.Command, args []string) error {
	if err := r.resolve(c.Flags(), os.Getenv, args); err != nil {
		cli.WarnOfUnknownVariables(c) // one of them may be the reason
		return err
	}
	log, out := r.log(c)
	defer out.flush()
	s, code, err := jobs.New(jobs.Options{
		Jobs: r.jobs, Schedule: schedule.Config{ClockOffset: r.clockOffset, Logger: log}, Output: r.output, Keep: r.keep,
		Unset: r.overridden, StopWithin: r.stopWithin, Needs: min(time.Second, r.lease/5), Guard: r.guard, Log: log,
		Quit: func(code int) {
			out.flush()
			os.Exit(code)
		},
	})
	if err != nil {
		return coded(code, r.uncontained(err))
	}
	defer s.Close()
	if text := guard.Uncovered(r.contain); text != "" {
		log.Info(text)
	}
	defer hear(s, jobs.Signals)()
	if c.Context().Err() != nil { // the end was requested before the handler was in place
		s.Hear(syscall.SIGTERM)
	}
	err = r.campaign(s, log)
	if s.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return coded(guarded.CodeFailed, err)
}

// campaign takes part in the election until a signal ends that.
func (r *cronFlags) campaign(s *jobs.Scheduler, log *slog.Logger) error {
	p, err := r.enter(s.Context(), "tenure cron", log)
	if err != nil {
		return err
	}
	defer p.leave()
	e, err := tenure.New(p.store, r.election, p.config)
	if err != nil {
		return cli.Flags{}.InFlags(err)
	}
	p.measures.joined([]*tenure.Election{e})
	var names []string
	for i := range r.jobs {
		names = append(names, r.jobs[i].Name)
	}
	log.Info("jobs wait for their ticks on the leader", "jobs", strings.Join(names, " "))
	s.Schedule.Metrics = p.config.Metrics
	return s.Run(e, p.opened)
}
