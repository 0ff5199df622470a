package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/driver"
)

const aboutEndLease = `Ends the lease of a leader that you know to be gone, by one compare-and-swap: the next candidate claims
at once, and does not wait until the lease has run out.

Use it if the wait is long and no process leads, for example in these cases:
  a leader with a long lease has died
  the record of a leader with a long lease was deleted: members that have seen it wait for that lease

Before you use it, stop every process that may lead, also those that are cut off from the store or
paused: such a leader would go on to act beside the next one. To confirm that, type the name of the
election again, as --no-leader NAME.

Candidates wait all the same if they do not believe the store, for example because it was recreated
or its database failed over while they ran. Restart those.

Exit codes:
  0  the record is a release now
  1  it is not: the record is foreign or malformed, or has changed in the meantime, or the store failed
  2  a flag, an argument or a variable is wrong, or --no-leader is missing

The one line of --json has time, event ("lease-ended"), election, id (of this command), term (of the
release), and was ("held", "released", "vacant" or "absent"); if it was held also leader and
leaseMillis.`

const examplesEndLease = `  tenure end-lease --store nats://host:4222/ELECTIONS --election billing --no-leader billing`

// endLeaseFlags are the flags of end-lease.
type endLeaseFlags struct {
	observerFlags
	noLeader string
}

func newEndLease() *cobra.Command {
	var e endLeaseFlags
	c := &cobra.Command{
		Use:     "end-lease --store URL --election NAME --no-leader NAME",
		Short:   "End the lease of a leader that is gone",
		Long:    aboutEndLease,
		Example: examplesEndLease,
		Args:    cli.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return e.run(c) },
	}
	e.define(c.Flags())
	c.Flags().StringVar(&e.noLeader, "no-leader", "", "the name of the election, to confirm that no process leads it")
	return c
}

func (e *endLeaseFlags) run(c *cobra.Command) error {
	if err := e.settle(c); err != nil {
		return err
	}
	if e.noLeader != e.election {
		return &fault.Error{
			Err:  fmt.Errorf("--no-leader is %q: it must be the name of the election, %q", e.noLeader, e.election),
			Hint: "stop every process that may lead, also those that are cut off or paused, and confirm that by the name",
			Code: fault.Usage,
		}
	}
	o, err := e.open(c, tenure.Config{Tuning: tenure.Tuning{NoWatch: true}}, untapped)
	if err != nil {
		return err
	}
	defer func() { _ = o.close() }()
	ended, err := o.endLease(c.Context())
	if err != nil {
		return err
	}
	if e.json {
		output.JSON(c.OutOrStdout(), ended)
		return nil
	}
	was := string(ended.Was)
	if ended.Leader != "" {
		was += " by " + output.Plain(ended.Leader) + ", with a lease of " + millis(ended.LeaseMillis).String()
	}
	fmt.Fprintf(c.OutOrStdout(), "was  %s\nnow  released in term %d: the next candidate claims at once\n", was, ended.Term)
	return nil
}

// endedLease is the result, as --json has it.
type endedLease struct {
	output.Head
	Was         admin.Kind `json:"was"`
	Leader      string     `json:"leader,omitempty"`
	LeaseMillis int64      `json:"leaseMillis,omitempty"`
}

func (o *observer) endLease(ctx context.Context) (endedLease, error) {
	before, err := o.look(ctx)
	if err != nil {
		return endedLease{}, err
	}
	if err := o.remedy(before.Record); err != nil {
		return endedLease{}, err
	}
	term, err := admin.EndLease(ctx, o.store, o.Name(), o.ID(), answerWithin)
	switch {
	case ctx.Err() != nil:
		return endedLease{}, context.Cause(ctx)
	case errors.Is(err, driver.ErrConflict):
		return endedLease{}, fault.New("a process writes to the record: find it with tenure watch, stop it, and try again", "the record has changed in the meantime: %w", err)
	case err != nil:
		return endedLease{}, o.place.Explain(err)
	}
	ended := endedLease{Head: o.head("lease-ended", term), Was: before.Record.Kind}
	if ended.Was == admin.Held {
		ended.Leader, ended.LeaseMillis = before.Record.LeaderID, before.Record.Lease.Milliseconds()
	}
	return ended, nil
}
