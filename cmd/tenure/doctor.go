package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/doctor"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver/race"
)

const aboutDoctor = `Examines a store before elections are held on it, and takes some seconds. It touches no election.

It checks the rights of this user, and the settings of the store. It lets 16 writers race for one
version, which exactly one may win. It measures reads, writes and pushes, up to 100 of each. From them
follow the shortest sensible lease and the longest failover. It compares the clocks of this machine,
and computes the cost of a month.

Each check is ok, a warning, unsafe, or unknown if it could not be made. Unsafe means that there may
be two leaders at once, or never a leader. What is seen in these seconds is no proof for other times.

The probe writes to one cell of less than 100 bytes. Its name begins with tenure-doctor. and tenure list
leaves it out. It stays in the store, and the last line says how to remove it. On object storage,
the check of the settings takes about 1,130 requests.

With --watch it repeats all checks, and prints those whose result changed, until Ctrl-C.

Exit codes, with --watch those of the last examination:
  0  all checks are ok
  1  the store cannot be reached or opened
  2  a flag, an argument or a variable is wrong
  4  nothing unsafe was found, but a check warns or could not be made
  5  the store is unsafe

Each line of --json is one object for one examination. It has time, event ("doctor"), store,
leaseMillis, verdict (the worst status), checks (objects with check, status, seen, remedy), and, if they
are known, readsMillis, writesMillis and pushesMillis (objects with calls, failed, p50, p90, p99 and
max), shortestLeaseMillis, failoverMillis (with that lease), dollarsPerMonth and left (the cell that
stays).`

const examplesDoctor = `  tenure doctor --store nats://host:4222/ELECTIONS
  tenure doctor --store s3://bucket/elections --election billing --lease 30s
  tenure doctor --context prod --watch 10m --json | jq '.verdict'`

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	where    cli.StoreFlags
	election string
	lease    time.Duration
	watch    time.Duration
	json     bool

	place stores.Place
	key   string // of the probe
}

func newDoctor() *cobra.Command {
	var d doctorFlags
	c := command("doctor --store URL", "Examine a store before you trust it", aboutDoctor, examplesDoctor, d.run)
	f := c.Flags()
	d.where.Define(f)
	f.StringVar(&d.election, "election", "", "check the rights for this election")
	f.DurationVar(&d.lease, "lease", 15*time.Second, "lease of the elections")
	cli.Group(f, cli.GroupElection)
	f.DurationVar(&d.watch, "watch", 0, "repeat all checks after this time (default: check once)")
	f.BoolVar(&d.json, "json", false, "one JSON object per line")
	cli.Group(f, cli.GroupOutput)
	return c
}

func (d *doctorFlags) resolve(c *cobra.Command) error {
	from, err := cli.Fill(c.Flags(), os.Getenv, nil)
	if err != nil {
		return err
	}
	if d.place, err = d.where.Place(c.Flags(), from, os.Getenv); err != nil {
		return err
	}
	limits, err := d.place.Limits()
	if err == nil {
		name := d.election
		if name == "" {
			name = d.key
		}
		err = cli.Flags{Named: from.Named, Given: c.Flags().Changed}.Check(limits, name, tenure.Config{Lease: d.lease})
	}
	return fault.OfValue(err)
}

func (d *doctorFlags) run(c *cobra.Command) error {
	d.key = race.NewKey()
	if err := d.resolve(c); err != nil {
		return err
	}
	first := d.key
	if d.election != "" {
		first = d.election
	}
	how := stores.Options{Client: "tenure doctor", Lease: d.lease}
	s, err := d.where.Connect(c.Context(), d.place, first, how, d.where.Waiting(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	prices, billed := d.place.Prices()
	return d.repeat(c, &doctor.Doctor{
		Store: s.Driver, Election: d.election, Lease: d.lease, Prices: prices, Billed: billed, Pace: d.place.Pace(), Key: d.key,
		// the report names the store once
		Explain: func(err error) error { return d.place.At.Explain(err) },
	})
}

// repeat examines the store once, or with --watch until the context ends.
func (d *doctorFlags) repeat(c *cobra.Command, of *doctor.Doctor) error {
	var last *doctor.Report
	for {
		r := of.Examine(c.Context())
		if c.Context().Err() != nil { // the checks were cut short
			return exit(c.Context(), last)
		}
		d.say(c.OutOrStdout(), r, last)
		last = r
		if d.watch == 0 {
			return exit(c.Context(), last)
		}
		select {
		case <-c.Context().Done():
			return exit(c.Context(), last)
		case <-time.After(d.watch):
		}
	}
}

// exit returns the exit code for a verdict.
func exit(ctx context.Context, r *doctor.Report) error {
	switch {
	case r == nil:
		return context.Cause(ctx)
	case r.Verdict == doctor.Unsafe:
		return fault.Exit(fault.UnsafeStore)
	case r.Verdict != doctor.OK:
		return fault.Exit(fault.NotConfirmed)
	}
	return nil
}

// say prints a report, or the changes since the last one.
func (d *doctorFlags) say(out io.Writer, r, last *doctor.Report) {
	now := time.Now()
	switch {
	case d.json:
		output.JSON(out, struct {
			Time        time.Time `json:"time"`
			Event       string    `json:"event"`
			Store       string    `json:"store"`
			LeaseMillis int64     `json:"leaseMillis"`
			*doctor.Report
		}{now.UTC(), "doctor", d.place.String(), d.lease.Milliseconds(), r})
	case last == nil:
		fmt.Fprintf(out, "%s, on %s\n\n", output.Plain(d.place.String()), now.Format("2006-01-02 15:04:05"))
		printChecks(out, r.Checks)
		fmt.Fprintf(out, "\n%s\n", summary(r))
		d.printLeft(out, r)
	default:
		if changed := r.Changed(last); len(changed) > 0 {
			fmt.Fprintf(out, "\n%s  %s\n", now.Format("2006-01-02 15:04:05"), summary(r))
			printChecks(out, changed)
		}
	}
}

func printChecks(out io.Writer, rows []doctor.Row) {
	width := 0
	for _, row := range rows {
		width = max(width, len(row.Check))
	}
	for _, row := range rows {
		line := fmt.Sprintf("  %-*s  %s: %s", width, row.Check, row.Status, output.Plain(row.Seen))
		fmt.Fprint(out, cli.Wrapped(line, output.Width(out)))
		if row.Remedy != "" { // in one line, since it may be a command
			fmt.Fprintf(out, "  %-*s  remedy: %s\n", width, "", output.Plain(row.Remedy))
		}
	}
}

// summary names the checks that are not ok.
func summary(r *doctor.Report) string {
	var all []string
	for _, status := range []doctor.Status{doctor.Unsafe, doctor.Warning, doctor.Unknown} {
		var names []string
		for _, row := range r.Checks {
			if row.Status == status && !slices.Contains(names, row.Check) {
				names = append(names, row.Check)
			}
		}
		if len(names) > 0 {
			all = append(all, string(status)+": "+strings.Join(names, ", "))
		}
	}
	if len(all) == 0 {
		return "all checks are ok"
	}
	return strings.Join(all, "; ")
}

func (d *doctorFlags) printLeft(out io.Writer, r *doctor.Report) {
	if r.Left == "" {
		return
	}
	text := "left in the store: " + r.Left
	if remove := d.place.Commands(r.Left).Delete; remove != "" {
		text += "; to remove it: " + remove
	}
	fmt.Fprintln(out, output.Plain(text))
}
