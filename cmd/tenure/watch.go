package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/tenure/internal/watch"
	"github.com/tenure-go/tenure/driver"
)

const aboutWatch = `Shows the leader of an election, and every change, until Ctrl-C or --for. It takes no part in the
election and writes nothing.

On a terminal it shows a live view: the leader, the time left on the lease as far as an observer can
know it, which candidate led when, and how long failovers took. It numbers the terms that it saw, #1,
#2 and so on, and shows the fencing token beside the number. With --plain or --json, or if standard
output is no terminal, it writes a line for each change.

A record that is found at the start, or after an outage, does not show whether its leader is alive.
That leader is not confirmed until a renewal is seen, and it leads since at least the first sight.

A failover is counted from the last sign of the previous leader: its release, or its last renewal
that was seen. After a renewal it takes at least the lease. If the record of that leader was only
found, the failover took at least the time from then. A store that does not push, such as object
storage, is read once or twice a second, so times there are no finer than that.

The lines of --json are objects with time, event, election, id (of this command) and term:
  leader    leader, address: the present leader; without leader: nobody leads. With atLeast, the
            term began before since
  named     leader, address, written (by its writer's clock), leaseMillis: a record that was found
            names this leader, and no renewal was seen
  failover  leader, from, kind ("graceful": the lease was released, "forced": the record was deleted,
            "silence": it was not renewed), millis, and leastMillis if that is known, and
            downtimeMillis: the time without a lease. With atLeast, millis counts from a record that
            was found, and byClockMillis by that record's clock. No failover is reported if it was
            not seen how the last term ended
  asked     leader, to, by: the leader of that term is asked to hand over
  trouble   cause: the store failed or refused
  alarm     cause: the key holds a foreign or malformed record, or the store was recreated or restored
  store     up, cause: the connection is lost, or back`

const examplesWatch = `  tenure watch --store nats://host:4222/ELECTIONS --election billing
  tenure watch --context prod --election billing --plain --for 1m
  tenure watch --store kafka://kafka-1:9092/elections --election writer --json | jq 'select(.event == "failover")'`

// watchFlags are the flags of watch.
type watchFlags struct {
	observerFlags
	forTime time.Duration
	plain   bool
}

func newWatch() *cobra.Command {
	var w watchFlags
	c := command("watch --store URL --election NAME", "Show the leader of an election, and every change", aboutWatch, examplesWatch, w.run)
	w.define(c.Flags())
	c.Flags().DurationVar(&w.forTime, "for", 0, "end after this time (default: run until Ctrl-C)")
	c.Flags().BoolVar(&w.plain, "plain", false, "lines instead of the live view, also on a terminal")
	return c
}

func (w *watchFlags) run(c *cobra.Command) error {
	if err := w.resolve(c); err != nil {
		return err
	}
	cfg := observing(tenure.Config{})
	if err := w.validate(cfg); err != nil {
		return err
	}
	watcher := watch.New(w.options(c, cfg))
	store, err := w.connect(c, watcher.Connection)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	ctx := c.Context()
	suggestIfAbsent(ctx, c.ErrOrStderr(), w.place, store.Driver, w.election)
	if w.forTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.forTime)
		defer cancel()
	}
	err = watcher.Run(ctx, store.Driver)
	if errors.Is(err, driver.ErrDenied) {
		return w.place.Explain(err)
	}
	return err
}

func (w *watchFlags) options(c *cobra.Command, cfg tenure.Config) watch.Options {
	out := c.OutOrStdout()
	o := watch.Options{
		Place: w.place, Election: w.election, Config: cfg, Out: out, JSON: w.json, Colour: output.Colours(out),
		Hints: []string{"look in: " + w.place.Commands(w.election).Look},
	}
	if output.Screen(out) && !w.json && !w.plain {
		o.Screen = out.(*os.File)
		o.In, _ = c.InOrStdin().(*os.File)
	}
	return o
}
