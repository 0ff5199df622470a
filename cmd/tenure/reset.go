package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/records"
)

const aboutReset = `Replaces a foreign or malformed record with a vacant record, by one compare-and-swap. A sound record
stays as it is: to have another leader, ask the present one with hand-over.

Use it in these cases:
  foreign    the key holds bytes that are not an election record, such as those of another program.
             Tenure never overwrites bytes that may belong to another program, so no candidate can
             lead until you reset the record.
  malformed  a record that breaks a limit of the format, such as after a hand edit, or shows a term
             that no candidate can have reached. Candidates wait for the lease that it shows, up to
             an hour, and then claim over it. A reset can shorten this wait.
It is safe if you know that the bytes belong to no other program any more, that no program goes on
writing them, and that no leader has a longer lease than --lease.

No candidate is elected before the vacant record has been seen for the longer of --lease and the
lease that a malformed record shows. A lease in it that is below 1 ms, or an hour or longer, is
ignored. If there still is a leader, it steps down when it sees the vacant record.

Exit codes:
  0  there is a vacant record now
  1  there is none: the record is sound, or has changed in the meantime, or the store failed
  2  a flag, an argument or a variable is wrong, or --force is missing

The one line of --json has time, event ("reset"), election, id (of this command), term (of the vacant
record), was ("foreign" or "malformed"), bytes (their number), beginning (of the replaced bytes),
problem, and waitMillis: for at least this time no candidate can be elected.`

const examplesReset = `  tenure reset --store nats://host:4222/ELECTIONS --election billing --force
  tenure reset --context prod --election billing --lease 1m --force`

// resetFlags are the flags of reset.
type resetFlags struct {
	observerFlags
	lease time.Duration
	force bool
}

func newReset() *cobra.Command {
	var r resetFlags
	c := command("reset --store URL --election NAME --force", "Replace a foreign or malformed record", aboutReset, examplesReset, r.run)
	r.define(c.Flags())
	c.Flags().DurationVar(&r.lease, "lease", 15*time.Second, "the longest lease of any candidate")
	c.Flags().BoolVar(&r.force, "force", false, "confirm that no program needs the present bytes, which are lost")
	return c
}

// errForce explains the effect of a reset.
var errForce = &fault.Error{
	Err: errors.New("--force is missing: reset replaces a foreign or malformed record with a vacant record, and the present " +
		"bytes are lost"),
	Hint: "look at the record with tenure status first; tenure reset --help says when a reset is right",
	Code: fault.Usage,
}

func (r *resetFlags) run(c *cobra.Command) error {
	if err := r.resolve(c); err != nil {
		return err
	}
	if !r.force {
		return errForce
	}
	var last lastValue
	cfg := tenure.Config{Lease: r.lease, Tuning: tenure.Tuning{NoWatch: true}}
	tap := func(s driver.Store) driver.Store { return records.Tap(s, last.see) }
	return r.observe(c, cfg, tap, func(o *observer) error {
		done, err := o.reset(c.Context(), &last)
		if err == nil {
			r.say(c, done)
		}
		return err
	})
}

// lastValue keeps the last value that was read from the store: after a reset, the replaced one.
type lastValue struct {
	mu    sync.Mutex
	value []byte
}

func (w *lastValue) see(_ string, e driver.Entry, _ bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.value = e.Value
}

func (w *lastValue) bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.value
}

// replacement is the result of a reset, as --json has it.
type replacement struct {
	output.Head
	Was        admin.Kind `json:"was"`
	Bytes      int        `json:"bytes"`
	Beginning  string     `json:"beginning"`
	Problem    string     `json:"problem"`
	WaitMillis int64      `json:"waitMillis"`
}

// reset reads the record before the reset, for the problem, and after it, for the term.
func (o *observer) reset(ctx context.Context, last *lastValue) (replacement, error) {
	before, err := o.firstStatus(ctx)
	if err != nil {
		return replacement{}, err
	}
	if before.Record.Problem == nil {
		return replacement{}, o.sound(before.Record)
	}
	wait, err := o.vacate(ctx)
	if err != nil {
		return replacement{}, err
	}
	was := last.bytes()
	after, err := o.firstStatus(ctx)
	if err != nil {
		return replacement{}, err
	}
	return replacement{
		Head: o.head("reset", after.Record.Term), Was: before.Record.Kind, Problem: before.Record.Problem.Error(),
		Bytes: len(was), Beginning: beginning(was), WaitMillis: wait.Milliseconds(),
	}, nil
}

// vacate is admin.Reset with errors that have hints.
func (o *observer) vacate(ctx context.Context) (wait time.Duration, err error) {
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	wait, err = admin.Reset(bounded, o.store, o.Name(), o.lease)
	switch {
	case err == nil:
		return wait, nil
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case errors.Is(err, admin.ErrSound), errors.Is(err, driver.ErrConflict):
		return 0, fault.New("look at the record again with tenure status", "the record has changed during the reset: %w", err)
	}
	return 0, o.place.Explain(err)
}

// sound returns the error for a record that needs no reset.
func (o *observer) sound(r admin.Record) error {
	hint := "nothing has to be done: the next candidate claims it"
	switch r.Kind {
	case admin.Absent:
		hint = "members that have seen a record wait until its lease is over; if no process leads, tenure end-lease ends a long one"
	case admin.Held:
		hint = "to have another leader, ask the present one with tenure hand-over"
	}
	return fault.New(hint, "election %q in %v: there is nothing to reset: the record is %s", o.Name(), o.place, r.Kind)
}

// shown is the number of bytes of the replaced value that are printed.
const shown = 64

// beginning returns the first bytes of a value, escaped so that they are safe to print.
func beginning(value []byte) string {
	text := strconv.Quote(string(value[:min(len(value), shown)]))
	return strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`)
}

func (r replacement) print(out io.Writer) {
	more := ""
	if r.Bytes > shown {
		more = "..."
	}
	fmt.Fprintf(out, "was  %s, %d bytes: %s%s\n", r.Was, r.Bytes, r.Beginning, more)
	fmt.Fprintf(out, "     %s\n", output.Plain(r.Problem))
	fmt.Fprintf(out, "now  a vacant record after term %d: no candidate can be elected for at least %v\n", r.Term, millis(r.WaitMillis))
}

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
	c := command("end-lease --store URL --election NAME --no-leader NAME", "End the lease of a leader that is gone", aboutEndLease, examplesEndLease, e.run)
	e.define(c.Flags())
	c.Flags().StringVar(&e.noLeader, "no-leader", "", "the name of the election, to confirm that no process leads it")
	return c
}

func (e *endLeaseFlags) run(c *cobra.Command) error {
	if err := e.resolve(c); err != nil {
		return err
	}
	if e.noLeader != e.election {
		return &fault.Error{
			Err:  fmt.Errorf("--no-leader is %q: it must be the name of the election, %q", e.noLeader, e.election),
			Hint: "stop every process that may lead, also those that are cut off or paused, and confirm that by the name",
			Code: fault.Usage,
		}
	}
	return e.observe(c, tenure.Config{Tuning: tenure.Tuning{NoWatch: true}}, nil, func(o *observer) error {
		ended, err := o.endLease(c.Context())
		if err == nil {
			e.say(c, ended)
		}
		return err
	})
}

// endedLease is the result, as --json has it.
type endedLease struct {
	output.Head
	Was         admin.Kind `json:"was"`
	Leader      string     `json:"leader,omitempty"`
	LeaseMillis int64      `json:"leaseMillis,omitempty"`
}

func (e endedLease) print(out io.Writer) {
	was := string(e.Was)
	if e.Leader != "" {
		was += " by " + output.Plain(e.Leader) + ", with a lease of " + millis(e.LeaseMillis).String()
	}
	fmt.Fprintf(out, "was  %s\nnow  released in term %d: the next candidate claims at once\n", was, e.Term)
}

func (o *observer) endLease(ctx context.Context) (endedLease, error) {
	before, err := o.firstStatus(ctx)
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
