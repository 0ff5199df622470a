package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/records"
)

// observerFlags are the flags of commands that do not take part in the election.
type observerFlags struct {
	where    cli.StoreFlags
	election string
	json     bool

	place stores.Place
	flags cli.Flags
}

func (o *observerFlags) define(f *pflag.FlagSet) {
	o.where.Define(f)
	f.StringVar(&o.election, "election", "", "name of the election, the key in the store")
	cli.Group(f, cli.GroupElection)
	f.BoolVar(&o.json, "json", false, "one JSON object per line")
	cli.Group(f, cli.GroupOutput)
}

// resolve takes the settings from the command line, or else from the environment, and sets the
// place of the election.
func (o *observerFlags) resolve(c *cobra.Command) error {
	from, err := cli.Fill(c.Flags(), os.Getenv, nil)
	if err != nil {
		return err
	}
	o.flags = cli.Flags{Named: from.Named, Given: c.Flags().Changed}
	if err := o.where.Require(c.Flags(), "election"); err != nil {
		return err
	}
	if o.place, err = o.where.Place(c.Flags(), from, os.Getenv); err != nil {
		return err
	}
	if o.election == "" {
		return fault.OfUsage(errors.New("--election is missing"))
	}
	return nil
}

// validate checks the settings of the election before a store is called.
func (o *observerFlags) validate(cfg tenure.Config) error {
	limits, err := o.place.Limits()
	if err == nil {
		err = o.flags.InFlags(cfg.Check(limits, o.election))
	}
	return fault.OfValue(err)
}

// observing returns the configuration of a member that only observes. Its lease only bounds one
// read of the store.
func observing(cfg tenure.Config) tenure.Config {
	if cfg.Lease == 0 {
		cfg.Lease = 5 * time.Second
	}
	cfg.ID = operator()
	cfg.Tuning.Renew = min(cfg.Lease/3, 500*time.Millisecond)
	cfg.Tuning.Poll, cfg.Tuning.PollStable = cfg.Tuning.Renew, time.Second
	return cfg
}

// operator names who runs this command, for the readers of a request to hand over.
func operator() string {
	name, host := "operator", "localhost"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return fmt.Sprintf("%.50s@%.200s", name, host)
}

// observer observes one election, without taking part in it.
type observer struct {
	*tenure.Election
	place stores.Place
	store driver.Store
	lease time.Duration
}

// observe connects to the store, and calls do with an observer. It reports on standard error if it
// has to wait. Call resolve first. Tap, if it is given, returns the store that the election uses.
func (o *observerFlags) observe(c *cobra.Command, cfg tenure.Config, tap func(driver.Store) driver.Store, do func(*observer) error) error {
	cfg = observing(cfg)
	if err := o.validate(cfg); err != nil {
		return err
	}
	store, err := o.connect(c, nil)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	ob := &observer{place: o.place, store: store.Driver, lease: cfg.Lease}
	if tap != nil {
		ob.store = tap(ob.store)
	}
	if ob.Election, err = tenure.New(ob.store, o.election, cfg); err != nil {
		return err
	}
	defer ob.suggest(c.Context(), c.ErrOrStderr(), store.Driver)
	return do(ob)
}

// say writes the result of a command, as text or with --json.
func (o *observerFlags) say(c *cobra.Command, result interface{ print(out io.Writer) }) {
	if o.json {
		output.JSON(c.OutOrStdout(), result)
		return
	}
	result.print(c.OutOrStdout())
}

func (o *observerFlags) connect(c *cobra.Command, connection func(bool, error)) (*stores.Store, error) {
	how := stores.Options{Client: "tenure " + c.Name(), OnConnection: connection}
	return o.where.Connect(c.Context(), o.place, o.election, how, o.where.Waiting(c.ErrOrStderr()))
}

// head returns the first fields of a line of --json.
func (o *observer) head(event string, term uint64) output.Head {
	return output.Head{Time: time.Now().UTC(), Event: event, Election: o.Name(), ID: o.ID(), Term: term}
}

// remedy returns an error with a hint for a foreign or malformed record, and nil for others.
func (o *observer) remedy(r admin.Record) error {
	problem := r.Problem
	if problem == nil {
		return nil
	}
	hint := fmt.Sprintf("candidates wait until about %s at the latest, or for their own lease if that is longer, and then claim "+
		"over it; if the record shows no valid lease, tenure reset --force shortens this wait", r.Seen.Add(r.Lease).Local().Format(time.TimeOnly))
	if errors.Is(problem, &tenure.StoreError{Kind: driver.Foreign}) {
		hint = "find out which program wrote them: " + o.place.Commands(o.Name()).Look + "; if no program needs them, tenure reset " +
			"--force puts a vacant record in their place; until then no candidate can lead"
	}
	return fault.New(hint, "election %q in %v: %w", o.Name(), o.place, problem)
}

// answerWithin bounds the wait for a store that has answered a moment ago.
const answerWithin = 10 * time.Second

// firstStatus returns the status after the first read of the store.
func (o *observer) firstStatus(ctx context.Context) (tenure.Status, error) {
	return o.wait(ctx, answerWithin, func(tenure.Status) bool { return true })
}

// silent returns the error for a store that has answered before, but does not any more. The trouble
// names the operation.
func (o *observer) silent(trouble error) error {
	const hint = "try again; tenure watch shows when it answers"
	if trouble == nil {
		return fault.Passing(hint, "election %q in %v: the store does not answer in time", o.Name(), o.place)
	}
	return fault.Passing(hint, "%v does not answer in time: %w", o.place, trouble)
}

// wait is Election.Wait with errors that have hints. When the time is over it returns the last
// status. The store has time for one answer even if within is shorter.
func (o *observer) wait(ctx context.Context, within time.Duration, until func(tenure.Status) bool) (tenure.Status, error) {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s, err := o.Wait(bounded, until)
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() != nil:
		return s, context.Cause(ctx)
	case s.Err != nil:
		return s, o.place.Explain(s.Err)
	case s.Known:
		return s, nil
	case within < answerWithin:
		return o.firstStatus(ctx)
	}
	return s, o.silent(s.Trouble)
}

const (
	// othersWithin bounds the list of elections for a hint.
	othersWithin = 2 * time.Second
	// maxOthers is how many elections a hint names.
	maxOthers = 5
)

// suggest prints a hint with the elections of the store if the observed one has no record: its name
// may be misspelled.
func (o *observer) suggest(ctx context.Context, errs io.Writer, store driver.Store) {
	if o.Status().Record.Kind == admin.Absent {
		suggest(ctx, errs, o.place, store, o.Name())
	}
}

// suggestIfAbsent reads the record, and prints the hint if there is none.
func suggestIfAbsent(ctx context.Context, errs io.Writer, place stores.Place, store driver.Store, election string) {
	bounded, cancel := context.WithTimeout(ctx, othersWithin)
	defer cancel()
	if e, err := store.Read(bounded, election); err == nil && e.Absent() {
		suggest(ctx, errs, place, store, election)
	}
}

func suggest(ctx context.Context, errs io.Writer, place stores.Place, store driver.Store, election string) {
	ctx, cancel := context.WithTimeout(ctx, othersWithin)
	defer cancel()
	names, err := driver.AbilitiesOf(store).Keys(ctx)
	names, _ = new(records.Jobs).Split(ctx, store, names)
	if err != nil || len(names) == 0 || slices.Contains(names, election) {
		return
	}
	fmt.Fprintf(errs, "hint: %s\n", output.Plain(others(names, election, place.String())))
}

// others returns a hint with the names that are nearest to the given one.
func others(names []string, to, place string) string {
	text := fmt.Sprintf("there is no record of election %q in %s", to, place)
	near := slices.Clone(names)
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(distance(a, to), distance(b, to)) })
	left := len(near) - maxOthers
	text += "; there are: " + strings.Join(near[:min(len(near), maxOthers)], ", ")
	if left > 0 {
		text += fmt.Sprintf(", and %d others: see tenure list", left)
	}
	return text
}

func distance(a, b string) int { return cli.Distance(strings.ToLower(a), strings.ToLower(b)) }
