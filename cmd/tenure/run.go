//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
	"github.com/tenure-go/tenure/cmd/tenure/internal/health"
	"github.com/tenure-go/tenure/cmd/tenure/internal/wrap"
	"github.com/tenure-go/tenure/slots"
)

func newRun() *cobra.Command {
	var r runFlags
	return commandOfCandidate("run --store URL --election NAME [flags] [--] COMMAND [ARG...]",
		"Run a command while leading, and only then", aboutRun, examplesRun, r.define, r.run)
}

// nameOfGuard is the first argument of a guard. The list of processes shows it.
const nameOfGuard = "guard"

// beGuard runs the guard and ends the process, if it was started as one. It is called before the
// commands are made, so that a guard needs little memory.
func beGuard() {
	if len(os.Args) < 2 || os.Args[1] != nameOfGuard {
		return
	}
	err := guard.Main(os.Args[2:])
	if err != nil {
		fault.Print(os.Stderr, err)
	}
	os.Exit(fault.Code(err))
}

// failed gives errors of run the exit code 125, which commands do not use, unless they have a code
// of run.
func failed(err error) error {
	if err == nil {
		return nil
	}
	var f fault.Error
	if known := (*fault.Error)(nil); errors.As(err, &known) {
		f = *known
	}
	if f.Code > fault.NoLeader {
		return err
	}
	f.Err, f.Code = err, guarded.CodeFailed
	return &f
}

func (r *runFlags) run(c *cobra.Command, args []string) error {
	if err := r.resolve(c.Flags(), os.Getenv); err != nil {
		cli.WarnOfUnknownVariables(c) // one of them may be the reason
		return err
	}
	w, log, end, err := r.wrapper(c, args, wrap.Options{Once: r.once, Restart: wrap.Restart(r.restart)})
	if err != nil {
		return err
	}
	defer end()
	p := &patience{wait: r.wait, none: r.noWait, wrapper: w}
	stop := p.begin()
	code, err := r.campaign(w, p, log)
	stop()
	w.Linger() // campaign has closed the store
	switch reason := w.GivenUp(); {
	case reason != nil:
		return reason
	case w.Context().Err() != nil && code == 0: // asked to end before there was a command
		return nil
	case code == 0 || err != nil:
		return coded(code, err)
	default:
		return fault.Exit(code)
	}
}

// wrapper returns the wrapper of a command, with the other options, which hears the signals of this
// process. Call end after it.
func (r *candidateFlags) wrapper(c *cobra.Command, args []string, o wrap.Options) (w *wrap.Wrapper, log *slog.Logger, end func(), err error) {
	if len(args) == 0 {
		return nil, nil, nil, fault.OfUsage(errors.New("there is no command to run"))
	}
	path, code, err := guarded.Find(args[0])
	if err != nil {
		return nil, nil, nil, coded(code, err)
	}
	log, out := r.log(c)
	o.Path, o.Args, o.StopWithin, o.Unset, o.Guard, o.Log = path, args, r.stopWithin, r.overridden, r.guard, log
	o.Quit = func(code int) {
		out.flush()
		os.Exit(code)
	}
	if w, err = wrap.New(o); err != nil {
		out.flush()
		return nil, nil, nil, r.uncontained(err)
	}
	if text := guard.Uncovered(r.contain); text != "" {
		log.Info(text)
	}
	silence := hear(w, guard.Forwarded)
	if c.Context().Err() != nil { // the end was requested before the handler was in place
		w.Hear(syscall.SIGTERM)
	}
	return w, log, func() {
		silence()
		w.Close()
		out.flush()
	}, nil
}

// coded gives an error an exit code, unless the code is 0.
func coded(code int, err error) error {
	if err == nil || code == 0 {
		return err
	}
	f := fault.New("", "%w", err)
	f.Code = code
	return f
}

// campaign takes part in the election, and returns the exit code and the error of the wrapper.
func (r *runFlags) campaign(w *wrap.Wrapper, patient *patience, log *slog.Logger) (code int, err error) {
	p, err := r.enter(w.Context(), "tenure run", log)
	if err != nil {
		return 0, err
	}
	defer p.leave()
	p.hear(patient.hear)
	hear, end := r.hook.open(log, r.overridden)
	defer end()
	if hear != nil {
		p.hear(hear)
	}
	var elections []*tenure.Election
	if r.trace != "" {
		file, err := openTrace(r.trace)
		if err != nil {
			return 0, err
		}
		p.config.Trace = file
		defer func() { file.end(elections) }()
	}
	c, elections, err := r.candidate(p)
	if err != nil {
		return 0, cli.Flags{}.InFlags(err)
	}
	patient.election.Store(elections[0])
	p.measures.joined(elections)
	stop := r.health.begin(log, r.overridden, func(fit bool) {
		for _, e := range elections {
			e.SetEligible(fit)
		}
	}, r.floor(elections[0]))
	defer stop()
	return w.Run(c)
}

// floor returns that of --check-floor, or nil.
func (r *runFlags) floor(e *tenure.Election) *health.Floor {
	if !r.health.floor {
		return nil
	}
	return &health.Floor{Election: e, Priority: r.priority, Lease: r.lease}
}

// candidate returns the candidate, and the elections in which it takes part.
func (r *runFlags) candidate(p *participation) (wrap.Candidate, []*tenure.Election, error) {
	if r.slots == 0 {
		e, err := tenure.New(p.store, r.election, p.config)
		return e, []*tenure.Election{e}, err
	}
	m, err := slots.New(p.store, r.election, slots.Config{Election: p.config, Slots: r.slots})
	if err != nil {
		return nil, nil, err
	}
	all := make([]*tenure.Election, r.slots)
	for i := range all {
		all[i] = m.ElectionOf(i + 1)
	}
	return slotCandidate{m}, all, nil
}

// slotCandidate leads one of the slots at a time.
type slotCandidate struct{ *slots.Member }

func (c slotCandidate) Run(ctx context.Context, lead tenure.Lead) error {
	return c.Member.Run(ctx, lead)
}

// runFlags are the settings of run.
type runFlags struct {
	candidateFlags
	health       healthFlags
	hook         hookFlags
	wait         time.Duration
	slots        int
	once, noWait bool
	restart      string
	trace        string
}

func (r *runFlags) define(f *pflag.FlagSet) {
	r.defineElection(f)
	f.IntVar(&r.slots, "slots", 0, "1 to 256: at most so many candidates run the command at a time; the elections are NAME/slots/1 and so on")
	cli.Group(f, cli.GroupElection)
	f.BoolVar(&r.once, "once", false, fmt.Sprintf("exit with %d when leadership is lost or handed over, and do not campaign again; --restart applies until then", wrap.CodeLost))
	f.DurationVar(&r.wait, "wait", 0, fmt.Sprintf("exit with %d if the command has not begun within this time; 0: no limit", wrap.CodeNotElected))
	f.BoolVar(&r.noWait, "no-wait", false, fmt.Sprintf("exit with %d at the first read that does not let this candidate lead at once", wrap.CodeNotElected))
	f.StringVar(&r.restart, "restart", string(wrap.RestartNever),
		"never, on-failure or always: run the command again when it ends by itself, after a pause, without giving up leadership")
	cli.Group(f, "Command")
	r.health.define(f)
	r.hook.define(f)
	r.defineRest(f)
	f.StringVar(&r.trace, "trace", "",
		fmt.Sprintf("record the election in this file, for a report of a bug, up to %d MiB; an earlier file is kept as FILE.1", maxTrace>>20))
	cli.Group(f, cli.GroupOutput)
}

func (r *runFlags) resolve(f *pflag.FlagSet, env func(string) string) error {
	return r.candidateFlags.resolve(f, env, r.checkOwn)
}

func (r *runFlags) checkOwn(from cli.Sources) error {
	if !slices.Contains(wrap.Restarts, wrap.Restart(r.restart)) {
		return fmt.Errorf("%s is %q; it must be never, on-failure or always", from.Named("restart"), r.restart)
	}
	if r.wait < 0 || r.wait > 0 && r.noWait {
		return fmt.Errorf("%s is %v; it must not be negative, nor given with --no-wait", from.Named("wait"), r.wait)
	}
	if r.noWait && r.health.given() {
		return fmt.Errorf("%s must not be given with --check or --check-http: a candidate waits for its first check", from.Named("no-wait"))
	}
	if r.slots != 0 && (r.noWait || r.priority != 0) {
		return fmt.Errorf("%s is %d; it must not be given with --no-wait or --priority", from.Named("slots"), r.slots)
	}
	if r.slots < 0 || r.slots > 256 {
		return fmt.Errorf("%s is %d; it must be from 1 to 256, or 0 for one election", from.Named("slots"), r.slots)
	}
	if err := checkTrace(r.trace); r.trace != "" && err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", from.Named("trace"), err)
	}
	return errors.Join(r.health.check(from), r.checkFloor(from))
}

func (r *runFlags) checkFloor(from cli.Sources) error {
	named := from.Named("check-floor")
	switch {
	case !r.health.floor:
	case r.slots != 0:
		return fmt.Errorf("%s must not be given with --slots", named)
	case r.priority <= health.FloorPriority:
		return fmt.Errorf("%s needs a --priority above %d, which unfit candidates have", named, health.FloorPriority)
	case r.place.Nomination(r.election) != "":
		return fault.New("leave one of them out", "%s works by priorities, and the nomination of the store's URL takes their place", named)
	}
	return nil
}
