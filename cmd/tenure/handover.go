package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/units"
)

const aboutHandOver = `Asks the leader, wherever it runs, to finish its work and hand over: to the candidate named by --to,
or to any candidate. The request is written into the record. The leader sees it at its next renewal
at the latest.

With --to, the leader goes on until that candidate has accepted: it must run, take part in the
election, be eligible and see the record. It answers at once where the store pushes, and elsewhere
within a lease. If it does not answer within two leases, the request is void, and nothing has changed.
Candidates of releases before this rule do not answer. With --force, the leader leaves even if the
candidate is not there; then another candidate leads, perhaps the same as before. If the candidate
leads already, or answers over the store (NATS) that it is not eligible, nothing is asked.

Without --to, the leader leaves even if there is no other candidate. It then leads again.

Asks the leader, and waits until leadership has moved, for up to --wait in all. The leader's work may
take up to its own setting --finish-within, 10 s by default, to finish. After that time the leader no
longer renews its lease. To ask takes one write in most cases. A record that may be out of date, as
after a failover of the database, is not changed before the leader has renewed it, which takes up to
10 s and a lease. The store has 10 s to answer in any case.

Exit codes:
  0  leadership has moved, to --to if that is given; or that candidate leads already; or with --wait 0,
     the leader is asked
  1  the candidate has not accepted, leadership has not moved or moved to another candidate, or the
     store failed
  2  a flag, an argument or a variable is wrong
  3  nobody leads, so there is no leader to ask; or no candidate has followed

The lines of --json are objects with time, event, election, id (of this command), term and leader.
Event "asked", also with to: the leader of that term is asked. Event "moved", also with from, and
millis since the leader was asked: there is a new leader. Event "unchanged": --to leads already, or
the same leader leads again, which is an error.`

const examplesHandOver = `  tenure hand-over --store nats://host:4222/ELECTIONS --election billing
  tenure hand-over --store nats://host:4222/ELECTIONS --election billing --to node-2 --wait 1m
  tenure hand-over --context prod --election billing --wait 0
  tenure hand-over --context prod --election billing --to node-2 --force`

// handOverFlags are the flags of hand-over.
type handOverFlags struct {
	observerFlags
	to    string
	force bool
	wait  time.Duration
}

func newHandOver() *cobra.Command {
	var h handOverFlags
	c := command("hand-over --store URL --election NAME [--to ID]", "Ask the leader to hand over", aboutHandOver, examplesHandOver, h.run)
	h.define(c.Flags())
	c.Flags().StringVar(&h.to, "to", "", "ID of the candidate that should lead next (default any)")
	c.Flags().BoolVar(&h.force, "force", false, "with --to: the leader leaves even if that candidate does not accept")
	c.Flags().DurationVar(&h.wait, "wait", 0, "how long to ask and wait until leadership has moved; 0: no wait (default 10s and four leases)")
	return c
}

func (h *handOverFlags) run(c *cobra.Command) error {
	if err := h.resolve(c); err != nil {
		return err
	}
	if h.force && h.to == "" {
		return fault.OfUsage(errors.New(h.flags.Named("force") + " needs --to: without it, no candidate has to accept"))
	}
	if !c.Flags().Changed("wait") {
		h.wait = -1
	}
	return h.observe(c, tenure.Config{}, nil, func(o *observer) error {
		return o.handOver(c.Context(), h, func(s step) { h.say(c, s) })
	})
}

// handOver asks the leader to hand over, and waits for the result. It calls say with each step.
func (o *observer) handOver(ctx context.Context, h *handOverFlags, say func(step)) error {
	began := time.Now()
	s, err := o.firstStatus(ctx)
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
		say(o.unchanged(s.Leader))
		return nil
	}
	if h.wait < 0 {
		// Long enough where nothing is pushed: the candidate and the leader see the request, the
		// work finishes, and the candidate sees the release.
		h.wait = 10*time.Second + 4*s.Record.Lease
	}
	if h.offers() && o.ineligible(ctx, h.to) {
		return fault.New("make it eligible; --force asks the leader to leave all the same",
			"%s answers that it is not eligible, so the leader is not asked", output.Plain(h.to))
	}
	if err := o.ask(ctx, h, h.askWithin(s.Record.Lease)); err != nil {
		return err
	}
	say(o.asked(s, h))
	if h.wait == 0 {
		return nil
	}
	m := move{from: s.Leader, written: s.Record.Updated, asked: time.Now()}
	now, err := o.follow(ctx, &m, h.wait-time.Since(began))
	if err != nil {
		return err
	}
	return m.outcome(now, h, func() {
		if now.Leader.Incarnation == s.Leader.Incarnation {
			say(o.unchanged(now.Leader))
			return
		}
		say(o.moved(s.Leader, now.Leader, m.at.Sub(m.asked)))
	})
}

// offers reports whether the request counts only once its candidate has accepted.
func (h *handOverFlags) offers() bool { return h.to != "" && !h.force }

// ineligible reports whether a candidate answers over the store that it is not eligible. Silence
// means nothing: few stores carry answers, and a candidate may lack the right.
func (o *observer) ineligible(ctx context.Context, id string) bool {
	if driver.AbilitiesOf(o.store).Presence == nil {
		return false
	}
	none := memberFlags{}
	answered := none.find(ctx, o.store, o.Name())().all[o.Name()]
	answered = slices.DeleteFunc(answered, func(c candidate) bool { return c.ID != id })
	eligible := func(c candidate) bool { return *c.Eligible }
	return len(answered) > 0 && !slices.ContainsFunc(answered, eligible)
}

// move is what is seen of a hand-over.
type move struct {
	from      tenure.Leader
	written   time.Time // when the leader had last written its record, by its clock
	asked, at time.Time // when the leader was asked, and when leadership had moved
	// offered and accepted: the record had an offer to a candidate, and the request that it made of
	// it.
	offered, accepted bool
}

// see takes a status, and reports whether leadership has moved.
func (m *move) see(s tenure.Status) bool {
	if q := s.Record.Request; q != nil {
		m.offered, m.accepted = m.offered || q.Offer, m.accepted || !q.Offer
	}
	m.at = time.Now()
	return s.Leader.Exists() && s.Leader.Term > m.from.Term
}

// void reports whether the leader goes on without the offer, which was not seen to be accepted.
func (m *move) void(s tenure.Status) bool {
	r := s.Record
	return m.offered && !m.accepted && r.Kind == admin.Held && r.Term == m.from.Term && r.Request == nil
}

// follow waits until leadership has moved. If the offer is gone, it waits for one more lease:
// without pushes it may have missed that the candidate has accepted.
func (o *observer) follow(ctx context.Context, m *move, within time.Duration) (tenure.Status, error) {
	end := time.Now().Add(within)
	for {
		now, err := o.wait(ctx, time.Until(end), func(s tenure.Status) bool { return m.see(s) || m.void(s) })
		if err != nil || !m.void(now) {
			return now, err
		}
		now, err = o.wait(ctx, min(time.Until(end), now.Record.Lease), func(s tenure.Status) bool { return m.see(s) || !m.void(s) })
		if err != nil || m.void(now) {
			return now, err
		}
	}
}

// askWithin returns how long the request may take, with the wait for a renewal of the leader. The
// store has time to answer even if --wait is shorter.
func (h *handOverFlags) askWithin(lease time.Duration) time.Duration {
	most := answerWithin + lease
	if h.wait == 0 {
		return most
	}
	return min(most, max(h.wait, answerWithin))
}

// ask makes the request. Its time is bounded, since it may take several attempts, and wait for the
// leader's next renewal.
func (o *observer) ask(ctx context.Context, h *handOverFlags, within time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	request := o.HandOver
	if h.force {
		request = o.ForceHandOver
	}
	err := request(bounded, h.to)
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
func (m *move) outcome(s tenure.Status, h *handOverFlags, told func()) error {
	from, to := m.from, s.Leader
	before, now := output.Plain(from.ID), output.Plain(to.ID)
	switch {
	case m.ignored(&s, time.Since(m.asked)):
		return unanswered(&s, before, time.Since(m.asked))
	case !to.Exists():
		f := fault.New("tenure watch shows when a candidate is elected; candidates that are not eligible do not claim",
			"%s has left, and no candidate has followed it within %v", before, h.wait)
		f.Code = fault.NoLeader
		return f
	case to.Term == from.Term && m.void(s):
		return fault.New("check that "+output.Plain(h.to)+" runs, takes part in this election and is eligible; --force asks the leader to leave all the same",
			"%s has not accepted, so %s goes on leading in term %d", output.Plain(h.to), before, from.Term)
	case to.Term == from.Term && h.offers() && !m.accepted:
		return fault.New("it may still accept, until two leases after the leader has seen the request; give it longer with --wait",
			"%s has not accepted within %v, so %s still leads in term %d", output.Plain(h.to), h.wait, before, from.Term)
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

// ignored reports whether the leader did not renew after it was asked although a living one would
// have: because enough time has passed, or because its record was older than its lease before. Its
// lease may have run out since.
func (m *move) ignored(s *tenure.Status, since time.Duration) bool {
	r := &s.Record
	silent := r.Kind == admin.Held && r.Term == m.from.Term && r.Updated.Equal(m.written)
	return silent && (since > r.Lease/2 || !s.Confirmed && !fresh(*r, m.asked))
}

// unanswered is the error for a leader that did not renew since it was asked.
func unanswered(s *tenure.Status, leader string, since time.Duration) error {
	if s.Leader.Exists() {
		return fault.New("it may be dead or cut off: if so, its lease runs out, and another candidate follows; tenure watch shows it",
			"%s did not answer: it has not renewed its lease since it was asked, %v ago", leader, since.Round(100*time.Millisecond))
	}
	f := fault.New("it is dead or cut off; tenure watch shows when a candidate is elected",
		"%s did not answer: its lease ran out without a renewal since it was asked, %v ago, and no candidate has followed it",
		leader, since.Round(100*time.Millisecond))
	f.Code = fault.NoLeader
	return f
}

// step is one line of the progress, as text or with --json.
type step struct {
	output.Head
	Leader string   `json:"leader"`
	To     *string  `json:"to,omitempty"`
	From   string   `json:"from,omitempty"`
	Millis *float64 `json:"millis,omitempty"`

	text string
}

func (s step) print(out io.Writer) { fmt.Fprintln(out, output.Plain(s.text)) }

func (o *observer) asked(s tenure.Status, h *handOverFlags) step {
	who := "who leads in"
	if !s.Confirmed && !fresh(s.Record, time.Now()) {
		who = "not confirmed as the leader of"
	}
	text := fmt.Sprintf("%s, %s term %d, is asked to hand over", s.Leader.ID, who, s.Leader.Term)
	if h.to != "" {
		text += " to " + h.to
	}
	if h.wait > 0 {
		text += fmt.Sprintf("; waiting up to %v", h.wait)
	}
	return step{Head: o.head("asked", s.Leader.Term), Leader: s.Leader.ID, To: &h.to, text: text}
}

func (o *observer) moved(from, to tenure.Leader, took time.Duration) step {
	ms := units.Millis(took)
	text := fmt.Sprintf("%s leads in term %d, %s later", to.ID, to.Term, units.Seconds(took))
	return step{Head: o.head("moved", to.Term), Leader: to.ID, From: from.ID, Millis: &ms, text: text}
}

func (o *observer) unchanged(leader tenure.Leader) step {
	text := fmt.Sprintf("the leader is still %s, in term %d", leader.ID, leader.Term)
	return step{Head: o.head("unchanged", leader.Term), Leader: leader.ID, text: text}
}
