package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/internal/units"
)

const aboutHandOver = `Asks the leader, wherever it runs, to finish its work and hand over: to the candidate named by --to,
or to any candidate. The request is written into the record. The leader sees it at its next renewal
at the latest.

With --to, that candidate has a head start when the lease is released. If it is not there, or not
eligible, another candidate leads, perhaps the same as before. That is an error, although there is a
leader. If the candidate leads already, nothing is asked.

Once the leader is asked, waits for up to --wait until leadership has moved. The leader's work may
take up to its own setting --finish-within, 10 s by default, to finish. After that time the leader no
longer renews its lease. To ask takes one write in most cases, and at most 10 s and a lease: a record
that may be out of date, as after a failover of the database, is not changed before the leader has
renewed it.

Exit codes:
  0  leadership has moved, to --to if that is given; or that candidate leads already; or with --wait 0,
     the leader is asked
  1  leadership has not moved, or moved to another candidate, or the store failed
  2  a flag, an argument or a variable is wrong
  3  nobody leads, so there is no leader to ask; or no candidate has followed

The lines of --json are objects with time, event, election, id (of this command), term and leader.
Event "asked", also with to: the leader of that term is asked. Event "moved", also with from, and
millis since the leader was asked: there is a new leader. Event "unchanged": --to leads already, or
the same leader leads again, which is an error.`

const examplesHandOver = `  tenure hand-over --store nats://host:4222/ELECTIONS --election billing
  tenure hand-over --store nats://host:4222/ELECTIONS --election billing --to node-2 --wait 1m
  tenure hand-over --context prod --election billing --wait 0`

// handOverFlags are the flags of hand-over.
type handOverFlags struct {
	observerFlags
	to   string
	wait time.Duration
}

func newHandOver() *cobra.Command {
	var h handOverFlags
	c := &cobra.Command{
		Use:     "hand-over --store URL --election NAME [--to ID]",
		Short:   "Ask the leader to hand over",
		Long:    aboutHandOver,
		Example: examplesHandOver,
		Args:    cli.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return h.run(c) },
	}
	h.define(c.Flags())
	c.Flags().StringVar(&h.to, "to", "", "ID of the candidate that should lead next (default any)")
	c.Flags().DurationVar(&h.wait, "wait", cli.UsualTimeout, "how long to wait until leadership has moved; 0: not at all")
	return c
}

func (h *handOverFlags) run(c *cobra.Command) error {
	if err := h.settle(c); err != nil {
		return err
	}
	o, err := h.open(c, tenure.Config{}, untapped)
	if err != nil {
		return err
	}
	defer func() { _ = o.close() }()
	return o.handOver(c.Context(), h, h.teller(c.OutOrStdout()))
}

// handOver asks the leader to hand over, and waits for the result.
func (o *observer) handOver(ctx context.Context, h *handOverFlags, tell handOverTeller) error {
	s, err := o.look(ctx)
	if err != nil {
		return err
	}
	if err := o.remedy(s.Record); err != nil {
		return err
	}
	if !s.Leader.Exists() {
		return o.nobody()
	}
	if h.to != "" && h.to == s.Leader.ID { // if it were asked, it would leave
		tell.unchanged(o, s.Leader)
		return nil
	}
	if err := o.ask(ctx, h.to, answerWithin+s.Record.Lease); err != nil {
		return err
	}
	asked := time.Now()
	tell.asked(o, s.Leader, h.to)
	if h.wait == 0 {
		return nil
	}
	moved := time.Duration(0)
	now, err := o.wait(ctx, h.wait, func(now tenure.Status) bool {
		moved = time.Since(asked)
		return now.Leader.Exists() && now.Leader.Term > s.Leader.Term
	})
	if err != nil {
		return err
	}
	return o.outcome(s.Leader, now.Leader, h, func() {
		if now.Leader.Incarnation == s.Leader.Incarnation {
			tell.unchanged(o, now.Leader)
			return
		}
		tell.moved(o, s.Leader, now.Leader, moved)
	})
}

// ask makes the request. Its time is bounded, since it may take several attempts, and wait for the
// leader's next renewal.
func (o *observer) ask(ctx context.Context, to string, within time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := o.HandOver(bounded, to)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, tenure.ErrNoLeader):
		return o.nobody()
	}
	return o.place.Explain(err)
}

func (o *observer) nobody() error {
	f := fault.New("run tenure status to see why; tenure watch shows when a candidate is elected", "election %q in %v: nobody leads", o.Name(), o.place)
	f.Code = fault.NoLeader
	return f
}

// outcome returns an error unless leadership has moved as requested. It calls told if there is a
// new term.
func (o *observer) outcome(from, to tenure.Leader, h *handOverFlags, told func()) error {
	before, now := output.Plain(from.ID), output.Plain(to.ID)
	switch {
	case !to.Exists():
		f := fault.New("tenure watch shows when a candidate is elected; candidates that are not eligible do not claim",
			"%s has left, and no candidate has followed it within %v", before, h.wait)
		f.Code = fault.NoLeader
		return f
	case to.Term == from.Term:
		return fault.New("it is asked, and leaves when its work has finished; give it longer with --wait",
			"%s still leads in term %d after %v", before, from.Term, h.wait)
	}
	told()
	switch {
	case h.to != "" && to.ID != h.to:
		return fault.New("check that "+h.to+" runs, takes part in this election and is eligible, and ask again",
			"%s leads now, in term %d, instead of %s", now, to.Term, h.to)
	case to.Incarnation == from.Incarnation && h.to == "":
		return fault.New("check that another candidate runs, takes part in this election and is eligible, and ask again",
			"%s leads again, in term %d: no other candidate has claimed", now, to.Term)
	}
	return nil
}

// handOverTeller reports the progress.
type handOverTeller interface {
	asked(o *observer, leader tenure.Leader, to string)
	moved(o *observer, from, to tenure.Leader, took time.Duration)
	unchanged(o *observer, leader tenure.Leader)
}

func (h *handOverFlags) teller(out io.Writer) handOverTeller {
	if h.json {
		return handOverJSON{out}
	}
	return handOverText{out}
}

type handOverText struct{ out io.Writer }

func (t handOverText) asked(_ *observer, leader tenure.Leader, to string) {
	text := fmt.Sprintf("%s, who leads in term %d, is asked to hand over", leader.ID, leader.Term)
	if to != "" {
		text += " to " + to
	}
	fmt.Fprintln(t.out, output.Plain(text))
}

func (t handOverText) moved(_ *observer, _, to tenure.Leader, took time.Duration) {
	fmt.Fprintln(t.out, output.Plain(fmt.Sprintf("%s leads in term %d, %s later", to.ID, to.Term, units.Seconds(took))))
}

func (t handOverText) unchanged(_ *observer, leader tenure.Leader) {
	fmt.Fprintln(t.out, output.Plain(fmt.Sprintf("the leader is still %s, in term %d", leader.ID, leader.Term)))
}

type handOverJSON struct{ out io.Writer }

// step is one line of --json.
type step struct {
	output.Head
	Leader string   `json:"leader"`
	To     *string  `json:"to,omitempty"`
	From   string   `json:"from,omitempty"`
	Millis *float64 `json:"millis,omitempty"`
}

func (t handOverJSON) asked(o *observer, leader tenure.Leader, to string) {
	output.JSON(t.out, step{Head: o.head("asked", leader.Term), Leader: leader.ID, To: &to})
}

func (t handOverJSON) moved(o *observer, from, to tenure.Leader, took time.Duration) {
	ms := units.Millis(took)
	output.JSON(t.out, step{Head: o.head("moved", to.Term), Leader: to.ID, From: from.ID, Millis: &ms})
}

func (t handOverJSON) unchanged(o *observer, leader tenure.Leader) {
	output.JSON(t.out, step{Head: o.head("unchanged", leader.Term), Leader: leader.ID})
}
