//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/tenure/internal/wrap"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/schedule"
)

// begun is when this process began.
var begun = time.Now()

func newTick() *cobra.Command {
	var t tickFlags
	return commandOfCandidate("tick --store URL --election NAME (--period D | --tick NAME) [flags] [--] COMMAND [ARG...]",
		shortTick, aboutTick, examplesTick, t.define, t.run)
}

// tickFlags are the settings of tick.
type tickFlags struct {
	candidateFlags
	tick                string
	period, wait        time.Duration
	again, queue, quiet bool
}

// longestWait is the longest --wait by default: a tick that is later does not help.
const longestWait = time.Hour

func (t *tickFlags) define(f *pflag.FlagSet) {
	t.defineName(f)
	f.DurationVar(&t.period, "period", 0, "the shortest time from one tick to the next: starts of less than half of it apart are for the same tick")
	f.StringVar(&t.tick, "tick", "", `instead of --period, the name of the tick, up to 64 characters, such as "$(date -u +%FT%H)"`)
	cli.Group(f, "Tick")
	f.BoolVar(&t.again, "at-least-once", false, "run a tick again whose run was interrupted, and run it if records may be missing; by default it runs at most once")
	f.BoolVar(&t.queue, "queue", false, "if an earlier tick is still running, wait for its end, up to --wait; by default this tick is skipped")
	f.DurationVar(&t.wait, "wait", 0, fmt.Sprintf("exit if the command has not begun on any machine within this time (default the period, at most %v)", longestWait))
	t.defineGuard(f)
	t.defineLease(f)
	t.defineLog(f, "warn")
	f.BoolVar(&t.quiet, "quiet", false, "print no line if the tick ran on another machine")
	f.BoolVar(&t.json, "json", false, "print that line as a JSON object, and logs as --log-format json does")
	cli.Group(f, cli.GroupOutput)
}

func (t *tickFlags) resolve(f *pflag.FlagSet, env func(string) string) error {
	return t.candidateFlags.resolve(f, env, func(from cli.Sources) error {
		if from.ByHand(f, "period") && !from.ByHand(f, "tick") {
			t.tick = "" // the variable is that of a tick that runs this process
		} else if from.ByHand(f, "tick") && !from.ByHand(f, "period") {
			t.period = 0
		}
		if !f.Changed("wait") {
			t.wait = longestWait
			if t.period > 0 {
				t.wait = min(t.wait, t.period)
			}
		}
		if !f.Changed("connect-timeout") {
			t.where.Timeout = t.wait
		}
		switch {
		case t.tick == "" && t.period == 0:
			return errors.New("--period is missing, or --tick")
		case t.tick != "" && t.period != 0:
			return errors.New("--period and --tick both identify the tick: give one of them")
		case t.wait == 0:
			return fmt.Errorf("%s is 0; it must be more than 0", from.Named("wait"))
		}
		limits, err := t.place.Limits()
		if err == nil {
			_, err = t.once(nowhere{Bounded: limits}, nil)
		}
		return err
	})
}

// once returns the invocation that this process is.
func (t *tickFlags) once(store driver.Store, log *slog.Logger) (*schedule.Once, error) {
	return schedule.NewOnce(store, t.election, schedule.Config{Logger: log}, schedule.Invocation{
		Job: "tick", Tick: t.tick, Period: t.period, Start: begun, AtLeastOnce: t.again, Window: t.wait,
	})
}

// run runs the command, or says where it ran.
func (t *tickFlags) run(c *cobra.Command, args []string) error {
	if err := t.resolve(c.Flags(), os.Getenv); err != nil {
		cli.WarnOfUnknownVariables(c)
		return err
	}
	f := &follower{flags: t}
	w, log, end, err := t.wrapper(c, args, wrap.Options{Once: true, Gate: f.gate})
	if err != nil {
		return err
	}
	defer end()
	f.log, f.wait, f.wrapper = log, t.wait, w
	stop := f.begin()
	code, err := t.campaign(f, w)
	stop()
	var elsewhere *ran
	switch never := w.GivenUp(); {
	case errors.As(never, &elsewhere):
		return elsewhere.print(c, t)
	case never != nil:
		return never
	case err != nil:
		return coded(code, err)
	case code != 0:
		return fault.Exit(code)
	case !f.began:
		return coded(wrap.CodeNotElected, errors.New("tenure was asked to end: the command was not run"))
	}
	return nil
}

func (t *tickFlags) campaign(f *follower, w *wrap.Wrapper) (code int, err error) {
	p, err := t.enter(w.Context(), "tenure tick", f.log)
	if err != nil {
		return 0, err
	}
	defer p.leave()
	p.hear(f.hear)
	e, err := tenure.New(p.store, t.election, p.config)
	if err != nil {
		return 0, cli.Flags{}.InFlags(err)
	}
	if f.once, err = t.once(p.store, f.log); err != nil {
		return 0, err
	}
	f.election.Store(e)
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	f.look(ctx) // a tick that is over needs no campaign
	go func() {
		defer close(done)
		f.follow(ctx)
	}()
	if ctx.Err() != nil {
		return 0, nil
	}
	return w.Run(e)
}

// ran reports that the tick began on another machine, and that its run is over.
type ran struct {
	schedule.TickStatus
	election string
}

// lost is the state of a tick after an interrupted run.
const lost = "lost"

func (r *ran) Error() string {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	text := fmt.Sprintf("%s: this tick ran on %s from %s to %s: ", r.election, output.Plain(r.ID), at(r.Began), at(r.Ended))
	switch {
	case r.State == lost:
		return fmt.Sprintf("%s: this tick began on %s at %s, and was interrupted: it is not run again", r.election, output.Plain(r.ID), at(r.Began))
	case r.Code != 0:
		return text + fmt.Sprintf("failed with exit code %d", r.Code)
	}
	return text + r.State
}

// tickJSON is the line of --json.
type tickJSON struct {
	Time     time.Time `json:"time"`
	Event    string    `json:"event"`
	Election string    `json:"election"`
	ID       string    `json:"id"`
	Term     uint64    `json:"term"`
	Tick     string    `json:"tick"`
	Attempt  int       `json:"attempt"`
	Began    time.Time `json:"began"`
	Ended    time.Time `json:"ended"`
	Code     int       `json:"code"`
}

// print prints the line. Of an interrupted run it warns, since no other process may do so.
func (r *ran) print(c *cobra.Command, t *tickFlags) error {
	switch {
	case t.json:
		output.JSON(c.OutOrStdout(), tickJSON{
			time.Now().UTC(), r.State, r.election, r.ID, r.Token, nameOf(r.Name, r.Planned), r.Attempt, r.Began.UTC(), r.Ended.UTC(), r.Code,
		})
	case r.State == lost:
		fault.Tell(c.ErrOrStderr(), "warning", r)
	case !t.quiet:
		fmt.Fprintln(c.OutOrStdout(), r)
	}
	return nil
}

// nameOf returns the name of a tick, or the instant that identifies it.
func nameOf(name string, planned time.Time) string {
	if name != "" {
		return name
	}
	return planned.UTC().Format(time.RFC3339Nano)
}

// nowhere is a store with limits, which is never called.
type nowhere struct {
	driver.Store
	driver.Bounded
}
