package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/story"
)

const aboutStatus = `Shows the leader of an election. It takes no part in the election and writes nothing.

One look at the record shows which candidate wrote it last. If the leader's timestamp in the record
is less than a lease old, this candidate leads. Otherwise clocks may differ, or the leader died and
no candidate followed. So status watches the record for up to --wait, until it is renewed or the
lease has run out, and says so on standard error. If --wait is over before, or 0, the leader is not
confirmed.

Only the leader knows how long its lease still lasts. Others see the time of its last renewal by the
leader's clock, and know that the lease lasts no more than one lease from now. No clock decides which
candidate is elected.

The other candidates are known if they answer over the store (NATS), or at the URLs of --member. They
say what they like, and one that is cut off says nothing: no decision depends on it.

Exit codes:
  0  there is a leader
  1  the leader cannot be determined, or the key holds no election record; a hint gives the remedy
  2  a flag, an argument or a variable is wrong
  3  nobody leads
  4  the record names a leader, but is older than its lease by its writer's clock, and no renewal was
     seen: not confirmed

Each line of --json is one object. It has time, event ("status"), election, id (of this command),
term, store and record ("held", "released", "vacant", "absent", "malformed" or "foreign"). It also
has each of these that is known: leader, address, metadata, priority, leaseMillis, renewed (by the
leader's clock), leftMillis (by that clock), mostMillis, confirmed (whether a renewal was seen), from
(the last leader), request {to, by, offer}, problem, candidates (objects with id, known ("answered",
"reported" or "led"), and as far as it is known from, state, eligible, priority, leaseMillis,
address, lastContact, problem), candidatesUnknown (why there may be others).`

const examplesStatus = `  tenure status --store nats://host:4222/ELECTIONS --election billing
  tenure status --store 's3://bucket/elections?region=eu-central-1' --election nightly --json
  TENURE_STORE=nats://user:password@host/ELECTIONS tenure status --election billing
  tenure status --context prod --election billing || echo nobody leads`

// statusFlags are the flags of status.
type statusFlags struct {
	observerFlags
	members memberFlags
	wait    time.Duration
}

func newStatus() *cobra.Command {
	var s statusFlags
	c := command("status --store URL --election NAME", "Show the leader of an election", aboutStatus, examplesStatus, s.run)
	s.define(c.Flags())
	c.Flags().DurationVar(&s.wait, "wait", cli.UsualTimeout, "how long to watch a record that looks old; 0: not at all")
	s.members.define(c.Flags())
	return c
}

func (s *statusFlags) run(c *cobra.Command) error {
	if err := s.resolve(c); err != nil {
		return err
	}
	if err := s.members.resolve(s.flags.Named, 1); err != nil {
		return err
	}
	return s.observe(c, tenure.Config{Tuning: tenure.Tuning{NoWatch: true}}, nil, func(o *observer) error { return s.show(c, o) })
}

func (s *statusFlags) show(c *cobra.Command, o *observer) error {
	candidates := s.members.find(c.Context(), o.store, s.election)
	now, err := o.judge(c.Context(), s.wait, func(leader string, renewed time.Time, within time.Duration) {
		text := story.NotConfirmed(renewed, time.Now())
		fmt.Fprintln(c.ErrOrStderr(), output.Plain(fmt.Sprintf("%s is %s; waiting up to %v for a renewal", leader, text, within)))
	})
	if err != nil {
		return err
	}
	now.present = candidates().of(s.election, now.From)
	s.say(c, now)
	switch {
	case now.err != nil:
		return now.err
	case now.Leader == "":
		return fault.Exit(fault.NoLeader)
	case now.unconfirmed():
		lease := millis(now.LeaseMillis) // the leader may be dead, or its clock may be wrong
		f := fault.New(fmt.Sprintf("give --wait %v or more: a leader that is alive renews within its lease", lease),
			"election %q in %v: %s is not confirmed as the leader: no renewal was seen, and by its writer's clock the record was not written within the last %v",
			o.Name(), o.place, output.Plain(now.Leader), lease)
		f.Code = fault.NotConfirmed
		return f
	}
	return nil
}

// judge reads the record, and watches it if one read does not show whether its leader lives. It
// calls waits before it watches.
func (o *observer) judge(
	ctx context.Context, within time.Duration, waits func(leader string, renewed time.Time, within time.Duration),
) (standing, error) {
	s, err := o.firstStatus(ctx)
	if err == nil && within > 0 && s.Leader.Exists() && !fresh(s.Record, time.Now()) {
		waits(s.Leader.ID, s.Record.Updated, min(within, s.Record.Lease))
		s, err = o.wait(ctx, within, func(s tenure.Status) bool {
			return !s.Leader.Exists() || s.Confirmed
		})
	}
	if err != nil {
		return standing{}, err
	}
	return o.standing(s), nil
}

// fresh reports whether the record was renewed less than a lease ago by its leader's clock. This
// only saves time: if clocks differ, status watches the record for a while, or reports a leader
// that has just died.
func fresh(r admin.Record, now time.Time) bool {
	age := now.Sub(r.Updated)
	return !r.Updated.IsZero() && -r.Lease < age && age < r.Lease
}

// standing is the output of status, as --json has it.
type standing struct {
	output.Head
	Store       string            `json:"store"`
	Record      admin.Kind        `json:"record"`
	Leader      string            `json:"leader,omitempty"`
	Address     string            `json:"address,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	LeaseMillis int64             `json:"leaseMillis,omitempty"`
	Renewed     *time.Time        `json:"renewed,omitempty"`
	LeftMillis  *int64            `json:"leftMillis,omitempty"`
	MostMillis  int64             `json:"mostMillis,omitempty"`
	Confirmed   bool              `json:"confirmed"`
	Priority    int               `json:"priority,omitempty"`
	From        string            `json:"from,omitempty"`
	Request     *handOverRequest  `json:"request,omitempty"`
	Problem     string            `json:"problem,omitempty"`
	present

	err error
}

// unconfirmed reports that the leader may be dead.
func (st *standing) unconfirmed() bool { return !st.Confirmed && st.LeftMillis == nil }

// handOverRequest is a request to hand over.
type handOverRequest struct {
	To    string `json:"to"`
	By    string `json:"by"`
	Offer bool   `json:"offer,omitempty"`
}

func (o *observer) standing(s tenure.Status) standing {
	r := s.Record
	st := standing{
		Head: o.head("status", r.Term), Store: o.place.String(), Record: r.Kind, LeaseMillis: r.Lease.Milliseconds(), err: o.remedy(r),
	}
	switch {
	case r.Problem != nil:
		st.Problem = r.Problem.Error()
	case s.Leader.Exists():
		st.lead(s)
	default:
		st.From = r.LeaderID
	}
	return st
}

// lead fills in the facts about a leader.
func (st *standing) lead(s tenure.Status) {
	r := s.Record
	st.Leader, st.Address, st.Metadata, st.Priority = s.Leader.ID, s.Leader.Address, s.Leader.Metadata, r.Priority
	st.Confirmed = s.Confirmed
	st.MostMillis = max(0, r.Lease-st.Time.Sub(r.Seen)).Milliseconds()
	if r.Request != nil {
		st.Request = (*handOverRequest)(r.Request)
	}
	if r.Updated.IsZero() {
		return
	}
	renewed := r.Updated.UTC()
	st.Renewed = &renewed
	if fresh(r, st.Time) {
		left := min(r.Lease, r.Lease-st.Time.Sub(r.Updated)).Milliseconds()
		st.LeftMillis = &left
	}
}

// print writes the status as text, with a line for each known fact.
func (st standing) print(out io.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%-9s %s\n", name, output.Plain(fmt.Sprintf(format, args...)))
	}
	defer st.present.print(row, st.Time)
	row("election", "%s", st.Election)
	row("store", "%s", st.Store)
	if st.Leader == "" {
		row("leader", "nobody")
		row("record", "%s", st.history())
		return
	}
	row("leader", "%s in term %d", st.Leader, st.Term)
	if st.Address != "" {
		row("address", "%s", st.Address)
	}
	row("renewed", "%s", st.renewal())
	row("lease", "%s", st.lease())
	if st.Priority != 0 {
		row("priority", "%d", st.Priority)
	}
	if q := st.Request; q != nil {
		row("asked", "%s", records.Request{To: q.To, By: q.By, Offer: q.Offer}.Asked())
	}
	for _, key := range slices.Sorted(maps.Keys(st.Metadata)) {
		row("metadata", "%s=%s", key, st.Metadata[key])
	}
}

// history describes the record of an election without a leader.
func (st standing) history() string {
	switch st.Record {
	case admin.Absent:
		return "there is none"
	case admin.Vacant:
		return fmt.Sprintf("vacant after term %d; candidates wait at least %v before they claim", st.Term, millis(st.LeaseMillis))
	case admin.Released:
		return fmt.Sprintf("released by %s in term %d", st.From, st.Term)
	case admin.Held:
		return fmt.Sprintf("%s held it in term %d; its lease of %v has run out", st.From, st.Term, millis(st.LeaseMillis))
	}
	return string(st.Record)
}

// renewal returns when the leader has renewed its lease for the last time.
func (st standing) renewal() string {
	if st.unconfirmed() {
		return st.notRenewed()
	}
	var all []string
	if st.Confirmed {
		all = append(all, "just now")
	}
	if st.Renewed != nil {
		switch age := st.Time.Sub(*st.Renewed).Round(100 * time.Millisecond); {
		case age.Abs() > aYear:
			all = append(all, "on "+st.Renewed.Format(time.DateOnly)+" by the leader's clock, which is wrong")
		case age < 0:
			all = append(all, fmt.Sprintf("in %v by the leader's clock", -age))
		default:
			all = append(all, fmt.Sprintf("%v ago by the leader's clock", age))
		}
	}
	return strings.Join(all, ", ")
}

// notRenewed returns when the record was written, if its leader was not seen to renew.
func (st standing) notRenewed() string {
	switch {
	case st.Renewed == nil:
		return story.NotConfirmed(time.Time{}, st.Time)
	case st.Time.Sub(*st.Renewed).Abs() > aYear:
		return "not confirmed: last written on " + st.Renewed.Format(time.DateOnly) + ", by its writer's clock"
	}
	return story.NotConfirmed(*st.Renewed, st.Time)
}

// aYear is the age above which renewal prints a date.
const aYear = 365 * 24 * time.Hour

func (st standing) lease() string {
	text := millis(st.LeaseMillis).String()
	if st.LeftMillis != nil {
		text += fmt.Sprintf("; %v left by that clock", millis(*st.LeftMillis).Round(100*time.Millisecond))
	}
	return text + fmt.Sprintf("; %v at the most, unless it is renewed", millis(st.MostMillis).Round(100*time.Millisecond))
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
